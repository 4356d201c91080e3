import { Faults } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { unknownName } from '../messages.ts'
import type { Registry } from '../models/index.ts'
import type { ProviderModel } from '../models/provider.ts'
import { type Actor, allows } from '../permissions.ts'
import type { Conditions } from './apply.ts'
import { compile, type Plan } from './compile.ts'
import { type Blueprint, type Entry, KeyOf } from './document.ts'

/** An application and its provider in one body, as deployment pipelines send them. */

const members = ['app', 'provider_model', 'provider'] as const
const applicationModel = 'service_core.application'

/** The ids of the two entries: also the members under which their faults are told. */
const ids = { provider: 'provider', app: 'app' } as const

export type Submission = {
  readonly blueprint: Blueprint
  /** Both entries checked; its faults are those of the whole body. */
  readonly plan: Plan
  readonly conditions: Conditions
  /** `apply oauth2 grafana`: what the job and the run are called. */
  readonly title: string
}

/** Whether the actor could write some provider of this kind: asked before anything is looked up for him. */
export const mayWrite = (actor: Actor, { resource }: { resource: string }): boolean =>
  allows(actor, `add_${resource}`) || allows(actor, `change_${resource}`)

/** The kind that a body names, when it names one. */
export function kindOf(body: unknown, registry: Registry): ProviderModel | undefined {
  const name = isObject(body) ? body.provider_model : undefined
  return [...registry.kinds.values()].find((model) => model.name === name)
}

/**
 * Converts a submission to a blueprint of two entries: the provider by its name, then the application by its slug, which
 * refers to the first. All faults of both are in the plan.
 *
 * @param body as parsed from JSON
 * @param createOnly `If-None-Match: *`
 * @param textFaults what reading the body showed already: told with the others
 */
export function toBlueprint(
  body: unknown,
  registry: Registry,
  createOnly: boolean,
  textFaults: Faults = new Faults(),
): Submission {
  const faults = new Faults().include([textFaults])
  const sent = envelope(body, faults)
  const kind = kindOf(body, registry)
  if (sent.provider_model !== undefined && kind === undefined) {
    const names = [...registry.kinds.values()].map(({ name }) => name)
    faults.add(['provider_model'], `Must be one of: ${names.join(', ')}.`)
  }
  const entries: Entry[] = []
  if (kind !== undefined && isObject(sent.provider))
    entries.push(toEntry(ids.provider, kind.name, 'name', sent.provider))
  const expectedKeys: Record<string, number> = {}
  if (isObject(sent.app)) {
    const { provider: key, ...app } = sent.app
    // A key that is sent is a claim about the provider beside it, not a second source.
    if (typeof key === 'number' && Number.isSafeInteger(key)) expectedKeys[ids.provider] = key
    else if (key !== undefined && key !== null)
      faults.add([ids.app, 'provider'], 'Must be a whole number: the key of the provider in this submission.')
    const provider = kind === undefined ? {} : { provider: new KeyOf(ids.provider) }
    entries.push(toEntry(ids.app, applicationModel, 'slug', { ...app, ...(isObject(sent.provider) && provider) }))
  }
  const slug = isObject(sent.app) ? String(sent.app.slug) : ''
  const blueprint: Blueprint = { version: 1, metadata: { name: `application ${slug}` }, entries }
  const plan = compile(blueprint, registry, (entry, index) => [entry.id ?? index])
  return {
    blueprint,
    plan: { steps: plan.steps, faults: faults.include([plan.faults]) },
    conditions: { createOnly, expectedKeys },
    title: `apply ${kind?.provider.kind} ${slug}`,
  }
}

function envelope(body: unknown, faults: Faults): JsonObject {
  if (!isObject(body)) {
    faults.add([], 'Must be an object with app, provider_model and provider.')
    return {}
  }
  for (const name of Object.keys(body)) {
    if (!members.some((member) => member === name)) faults.add([name], unknownName('member', name, members))
  }
  for (const name of members) {
    const value = body[name]
    if (value === undefined) faults.add([name], 'This member is required.')
    else if (name !== 'provider_model' && !isObject(value)) faults.add([name], 'Must be an object.')
  }
  return body
}

function toEntry(id: string, model: string, identifier: string, sent: JsonObject): Entry {
  const { [identifier]: named, ...attrs } = sent
  return { model, id, state: 'present', identifiers: named === undefined ? {} : { [identifier]: named }, attrs }
}
