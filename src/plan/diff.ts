import type { Keyring } from '../db/seal.ts'
import type { ErrorList } from '../errors.ts'
import type { Values } from '../models/define.ts'
import type { Resolver } from './resolve.ts'
import { isSame } from './same-value.ts'
import { generateNew, isMissing } from './secret-forms.ts'
import { labelColumn, type Row } from './statements.ts'
import { nameSent, type Step, waysToFind } from './step.ts'
import { toValues } from './storage.ts'

/** An entry with its row, while it is checked. */
export type Entry = {
  readonly resolver: Resolver
  readonly errors: ErrorList
  readonly step: Step
  /** The row that its identifiers find. */
  readonly row: Row | undefined
  /** Its fields with keys instead of references, and those that result from them for this row. */
  readonly values: ReadonlyMap<string, unknown>
  readonly sent: ReadonlyMap<string, unknown>
}

/** The changes of an entry. A diff with errors is never written: only its action is used, to check the permission. */
export type Diff = {
  readonly action: 'create' | 'update' | 'unchanged' | 'delete' | 'leave'
  /** The whole row as it will be; a field that has errors or is missing is undefined. */
  readonly values: Values
  /** Fields that differ, in the model's order. */
  readonly changed: readonly string[]
  /** The row as it is, with secrets opened; undefined for a new one, and for one that is deleted. */
  readonly before: Values | undefined
  readonly generated: Readonly<Record<string, string>>
}

export const noChange: Diff = { action: 'leave', values: {}, changed: [], before: undefined, generated: {} }

/**
 * The way to compare an entry with its row. `blind` compares nothing: it is for a row that the caller may not view, in a plan and
 * in the apply of a reviewed one. Every other apply compares such a row, as `hidden`: each guess is a write that is recorded
 * (docs/adr/0040-a-plan-is-an-apply-that-is-rolled-back.md).
 */
export type Comparison = 'open' | 'hidden' | 'blind'

/** Fields that count as changed with any values of the row: the answer would otherwise show whether a guess was right. */
export const unseenFields = ({ model, identifiers }: Step, sent: ReadonlyMap<string, unknown>): readonly string[] => {
  const finding = new Set(waysToFind(model, [...identifiers.keys()]).flat())
  return [...sent.keys()].filter((name) => !finding.has(name))
}

/**
 * Compares an entry with its row, and checks the row that would result.
 *
 * @param entry its sent fields are undefined where they have errors, and its errors are those known so far; more are added
 */
export async function diff(entry: Entry, keyring: Keyring, comparison: Comparison): Promise<Diff> {
  const { step, row, errors } = entry
  const { model, state, path } = step
  if (state === 'absent') return row === undefined ? noChange : { ...noChange, action: 'delete' }
  if (row === undefined && step.mustExist) return noChange
  if (row === undefined) return create(entry, generate(step, entry.sent))
  const stored = toValues(model, row, keyring)
  if (state === 'must_created') {
    const label = `${model.displayName} ${JSON.stringify(row[labelColumn(model)])}`
    errors.add(path, 'exists', `${comparison === 'open' ? label : nameSent(step)} is there already.`)
    return noChange
  }
  if (state === 'created') return { ...noChange, before: stored }
  const { sent, generated } = generate(step, withMissing(entry, stored))
  const unseen = new Set(comparison === 'blind' ? unseenFields(step, sent) : [])
  const changed = [...model.fields.values()].filter(
    (field) =>
      unseen.has(field.name) || (sent.has(field.name) && !isSame(field, stored[field.name], sent.get(field.name))),
  )
  const isChanged = new Set(changed.map(({ name }) => name))
  const written = [...sent].filter(([name]) => isChanged.has(name) || !model.fields.has(name))
  const values = { ...stored, ...Object.fromEntries(written) }
  // A refusal of wrong guesses alone would reveal them at no cost: a right guess is refused for the same rules.
  const guesses = comparison === 'hidden' && [...sent.keys()].some((name) => model.fields.get(name)?.secret)
  if (changed.length > 0 || guesses) checkRules(step, values, errors)
  if (changed.length === 0) return { ...noChange, action: 'unchanged', values, before: stored }
  return { action: 'update', values, changed: changed.map(({ name }) => name), before: stored, generated }
}

/** The sent fields, and secrets that the row lacks: as in a new row, they are generated or required. */
function withMissing({ step: { model, path }, sent, errors }: Entry, stored: Values): Entry['sent'] {
  const missing = [...model.fields.values()].filter((field) => isMissing(field, stored) && !sent.has(field.name))
  for (const { name, required } of missing)
    if (required) errors.add([...path, name], 'required', 'This field is required: its value was lost.')
  return new Map([...sent, ...missing.map(({ name, required }) => [name, required ? undefined : generateNew] as const)])
}

/** The sent fields with the values that the service generates, and these alone. */
type Generated = Pick<Entry, 'sent'> & Pick<Diff, 'generated'>

function generate({ model }: Step, asked: Entry['sent']): Generated {
  const sent = new Map(asked)
  const generated: Record<string, string> = {}
  for (const [name, value] of asked) {
    const made = value === generateNew ? model.fields.get(name)?.generate?.() : undefined
    if (made === undefined) continue
    generated[name] = made
    sent.set(name, made)
  }
  return { sent, generated }
}

async function create({ step, errors }: Entry, { sent, generated: asked }: Generated): Promise<Diff> {
  const { model, path } = step
  const values: Record<string, unknown> = {}
  const generated = { ...asked }
  for (const field of model.fields.values()) {
    const { name, required, initial, generate } = field
    if (sent.has(name)) values[name] = sent.get(name)
    else if (required) errors.add([...path, name], 'required', 'This field is required.')
    else if (generate !== undefined) values[name] = generated[name] = generate()
    else values[name] = initial ?? null
  }
  const created: Diff = { action: 'create', values, changed: [...model.fields.keys()], before: undefined, generated }
  const isValid = !errors.any && ![...sent.values()].includes(undefined)
  // Missing values are generated only for a row without errors, and the rules need them.
  if (model.generateMissing !== undefined && !isValid) return created
  const whole = model.generateMissing === undefined ? values : await model.generateMissing(values)
  checkRules(step, whole, errors)
  return { ...created, values: whole }
}

/** An error of a rule is dropped when its field already has an error of its own. */
function checkRules({ model, path }: Step, values: Values, errors: ErrorList): void {
  model.rules?.(values, (at, code, message) => {
    const [field] = at
    if (field === undefined || values[field] !== undefined) errors.add([...path, ...at], code, message)
  })
}
