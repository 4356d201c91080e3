import { type Blueprint, documentLimits, type Entry, KeyOf } from '../document/document.ts'
import { ErrorList, type FieldPath } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { codeOfIssue, unknownName } from '../messages.ts'
import { ownerLabel } from '../models/fields.ts'
import type { ProviderModel } from '../models/provider.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { type Actor, allowsSome } from '../permissions.ts'
import { compile, compileInTurns, type Plan } from './compile.ts'
import { type Conditions, type RequestConditions, unconditional } from './engine.ts'
import { unknownKind } from './unknown-model.ts'

/** An application and its provider in one body, as deployment pipelines send them. */

const fields = ['app', 'provider_model', 'provider'] as const
const applicationModel = 'service_core.application'

export type Submission = {
  readonly blueprint: Blueprint
  /** Both checked entries, with the errors of the whole body. */
  readonly plan: Plan
  readonly conditions: Conditions
  /** The name of the job and the run: `apply oauth2 grafana`, or `plan oauth2 grafana`. */
  readonly title: string
  readonly kind: string
  readonly slug: string
}

/** Whether the actor may write any provider of this kind. It is checked before anything is read for the request. */
export const mayWrite = (actor: Actor, { resource }: { resource: string }): boolean =>
  allowsSome(actor, `add_${resource}`) || allowsSome(actor, `change_${resource}`)

/** @returns the kind that a body names; undefined when it names none */
export function kindOf(body: unknown, registry: Registry): ProviderModel | undefined {
  const name = isObject(body) ? body.provider_model : undefined
  return [...registry.kinds.values()].find((model) => model.name === name)
}

/** The owner that a submission names: the same as `Gatewright-Owner`, and of one in a set, that of its entries. */
export function ownerIn(body: unknown, errors: ErrorList, at: FieldPath = []): string | undefined {
  if (!isObject(body) || body.owner === undefined) return undefined
  const { data, error } = ownerLabel().safeParse(body.owner)
  for (const issue of error?.issues ?? []) errors.add([...at, 'owner'], codeOfIssue(issue, body.owner), issue.message)
  return data
}

/**
 * Converts a submission to a blueprint of two entries: the provider by its name, then the application by its slug, which
 * refers to the first. All errors of both are in the plan.
 *
 * @param body the parsed JSON
 * @param asked the conditions of the request; without one, those of a plan
 * @param textErrors errors of parsing the body, reported with the others
 */
export function toBlueprint(
  body: unknown,
  registry: Registry,
  asked: RequestConditions = { ...unconditional, mode: 'plan' },
  textErrors: ErrorList = new ErrorList(),
): Submission {
  const errors = new ErrorList().include([textErrors])
  const { kind, slug, entries, expectedKeys } = entriesOf(body, registry, { at: [], within: [], errors })
  const blueprint: Blueprint = { version: 1, metadata: { name: `application ${slug}`.slice(0, 255) }, entries }
  const plan = compile(blueprint, registry, (entry, index) => [entry.id ?? index], asked)
  return {
    blueprint,
    plan: { steps: plan.steps, errors: errors.include([plan.errors]) },
    conditions: { ...asked, expectedKeys },
    title: `${asked.mode} ${kind?.provider.kind} ${slug}`,
    kind: kind?.provider.kind ?? 'unknown',
    slug,
  }
}

/** Submissions that are sent together, and their path in the body. */
export type SentSet = { readonly bodies: readonly unknown[]; readonly within: FieldPath }

/**
 * The submissions of a body: it is a list of them, or an object with the list, for languages where a list has no type of its own.
 *
 * @returns undefined for another body @throws {Problem} `invalid` for an object with other fields
 */
export function setIn(body: unknown): SentSet | undefined {
  if (Array.isArray(body)) return { bodies: body, within: [] }
  if (!isObject(body) || !Object.hasOwn(body, 'submissions')) return undefined
  const { submissions, ...others } = body
  const errors = new ErrorList()
  for (const name of Object.keys(others))
    errors.add([name], 'unknown_field', () => unknownName('field', name, ['submissions']))
  if (!Array.isArray(submissions)) errors.add(['submissions'], 'wrong_type', 'Must be a list.')
  errors.throwIfAny()
  return { bodies: Array.isArray(submissions) ? submissions : [], within: ['submissions'] }
}

/**
 * Converts submissions to one blueprint: all are applied, or none. The ids of entries, and the places of errors, begin with the
 * place in the list.
 *
 * @param sent the parsed JSON
 * @param errors those of the request; those of the bodies are added
 */
export async function toSet(
  { bodies, within }: SentSet,
  registry: Registry,
  asked: RequestConditions,
  errors: ErrorList,
): Promise<Pick<Submission, 'blueprint' | 'plan' | 'conditions'>> {
  const most = documentLimits.entries / 2
  if (bodies.length === 0) errors.add(within, 'too_short', 'Holds no submission.')
  if (bodies.length > most)
    errors.add(within, 'too_long', `Holds ${bodies.length} submissions: at most ${most} are taken.`)
  const parts = bodies.slice(0, most).map((body, index) => {
    const owner = ownerIn(body, errors, [...within, index])
    const { entries, ...part } = entriesOf(body, registry, { at: [index], within, errors })
    return { ...part, entries: owner === undefined ? entries : entries.map((each) => ({ ...each, owner })) }
  })
  const entries = parts.flatMap((part) => part.entries)
  const blueprint: Blueprint = { version: 1, metadata: { name: `${bodies.length} submissions` }, entries }
  const pathOf = ({ id = '' }: Entry) => {
    const [index = '', part = ''] = id.split('.')
    return [...within, Number(index), part]
  }
  const plan = await compileInTurns(blueprint, registry, pathOf, asked)
  return {
    blueprint,
    plan: { steps: plan.steps, errors: errors.include([plan.errors]) },
    conditions: { ...asked, expectedKeys: Object.assign({}, ...parts.map((part) => part.expectedKeys)) },
  }
}

/** The entries of one submission. @param of its index in a list of them, and the path of the list */
function entriesOf(
  body: unknown,
  registry: Registry,
  { at: place, within, errors }: { readonly at: FieldPath; readonly within: FieldPath; readonly errors: ErrorList },
) {
  const at = [...within, ...place]
  const sent = envelope(body, errors, at)
  const kind = kindOf(body, registry)
  const { provider_model: named } = sent
  if (named !== undefined && kind === undefined)
    errors.add([...at, 'provider_model'], 'invalid_choice', () => unknownKind(named, [...registry.kinds.values()]))
  const [providerId = '', appId = ''] = ['provider', 'app'].map((id) => [...place, id].join('.'))
  const entries: Entry[] = []
  if (kind !== undefined && isObject(sent.provider)) {
    const provider = withoutModel(sent.provider, kind, errors, at)
    entries.push(toEntry(providerId, kind.name, 'name', provider, errors, [...at, 'provider']))
  }
  const expectedKeys: Record<string, number> = {}
  if (isObject(sent.app)) {
    const { provider: key, ...app } = sent.app
    // A sent key or name must be that of the submitted provider. It never selects another one.
    if (typeof key === 'number' && Number.isSafeInteger(key)) expectedKeys[providerId] = key
    else if (key !== undefined && key !== null && !isNameOf(key, sent.provider))
      errors.add([...at, 'app', 'provider'], 'wrong_reference', otherProvider)
    const provider = kind === undefined ? {} : { provider: new KeyOf(providerId) }
    const fields = { ...app, ...(isObject(sent.provider) && provider) }
    entries.push(toEntry(appId, applicationModel, 'slug', fields, errors, [...at, 'app']))
  }
  return { kind, slug: isObject(sent.app) ? String(sent.app.slug) : '', entries, expectedKeys }
}

const otherProvider = 'Must be the key or the name of the provider in this submission.'

const isNameOf = (sent: unknown, provider: unknown): boolean =>
  isObject(provider) &&
  typeof sent === 'string' &&
  typeof provider.name === 'string' &&
  comparedName(sent) === comparedName(provider.name)

function envelope(body: unknown, errors: ErrorList, at: FieldPath): JsonObject {
  if (!isObject(body)) {
    errors.add(at, 'wrong_type', 'Must be an object with app, provider_model and provider.')
    return {}
  }
  for (const name of Object.keys(body)) {
    if (name !== 'owner' && !fields.some((field) => field === name))
      errors.add([...at, name], 'unknown_field', () => unknownName('field', name, [...fields, 'owner']))
  }
  for (const name of fields) {
    const value = body[name]
    if (value === undefined) errors.add([...at, name], 'required', 'This field is required.')
    else if (name !== 'provider_model' && !isObject(value))
      errors.add([...at, name], 'wrong_type', 'Must be an object.')
  }
  return body
}

/** Newer clients of this API family repeat `provider_model` inside the provider, as one of its fields. */
function withoutModel(provider: JsonObject, { name }: ProviderModel, errors: ErrorList, at: FieldPath): JsonObject {
  const { provider_model, providerModel, ...fields } = provider
  const message = `Must be ${name}, as provider_model beside it, or left out.`
  for (const [field, value] of Object.entries({ provider_model, providerModel }))
    if (value !== undefined && value !== name) errors.add([...at, 'provider', field], 'invalid_combination', message)
  return fields
}

function toEntry(
  id: string,
  model: string,
  identifier: string,
  sent: JsonObject,
  errors: ErrorList,
  at: FieldPath,
): Entry {
  const { [identifier]: named, was, ...attrs } = sent
  if (was !== undefined && typeof was !== 'string')
    errors.add([...at, 'was'], 'wrong_type', 'Must be a text: the name before.')
  return {
    ...(typeof was === 'string' && { was }),
    model,
    id,
    state: 'present',
    identifiers: named === undefined ? {} : { [identifier]: named },
    attrs,
  }
}
