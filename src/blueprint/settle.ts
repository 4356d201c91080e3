import { isDeepStrictEqual } from 'node:util'
import type { Keyring } from '../db/seal.ts'
import type { Faults } from '../errors.ts'
import type { Member, Values } from '../models/define.ts'
import type { Step } from './compile.ts'
import { unpack } from './rows.ts'
import { labelColumn, type Row } from './statements.ts'

/** What an entry makes of its row. With faults it is never written: then it only says which permission it would need. */
export type Settled = {
  readonly action: 'create' | 'update' | 'unchanged' | 'delete' | 'leave'
  /** The whole row as it will be; a member that is faulty or missing is undefined. */
  readonly values: Values
  /** Members that differ, in the model's order. */
  readonly changed: readonly string[]
  /** Values that the service made up. */
  readonly generated: Readonly<Record<string, string>>
}

export const nothing: Settled = { action: 'leave', values: {}, changed: [], generated: {} }

/**
 * Decides between creating, updating and leaving alone, and checks what the row would become.
 *
 * @param sent members by name; one that has faults is undefined
 * @param faults gets what else is wrong, and holds what is known to be
 */
export async function settle(
  step: Step,
  row: Row | undefined,
  sent: ReadonlyMap<string, unknown>,
  keyring: Keyring,
  faults: Faults,
): Promise<Settled> {
  const { model, state, path } = step
  if (state === 'absent') return row === undefined ? nothing : { ...nothing, action: 'delete' }
  if (row === undefined) return create(step, sent, faults)
  if (state === 'must_created') {
    faults.add(path, `${model.noun} ${JSON.stringify(row[labelColumn(model)])} is there already.`)
    return nothing
  }
  if (state === 'created') return nothing
  const stored = unpack(model, row, keyring)
  const values = { ...stored, ...Object.fromEntries(sent) }
  const changed = [...model.members.values()].filter(
    (member) => sent.has(member.name) && !isSame(member, stored[member.name], sent.get(member.name)),
  )
  if (changed.length === 0) return { ...nothing, action: 'unchanged', values }
  checkRules(step, values, faults)
  return { action: 'update', values, changed: changed.map(({ name }) => name), generated: {} }
}

/** A link is a set; everything else is compared as it stands. */
function isSame({ place }: Member, stored: unknown, sent: unknown): boolean {
  if (place.in === 'link' && Array.isArray(stored) && Array.isArray(sent)) {
    const keys = new Set<unknown>(sent)
    return stored.length === sent.length && stored.every((key) => keys.has(key))
  }
  return isDeepStrictEqual(stored, sent) || isDeepStrictEqual(stored, asStored(sent))
}

/** What is stored has been through JSON, which knows no minus zero. */
function asStored(sent: unknown): unknown {
  if (typeof sent === 'number') return sent + 0
  return typeof sent === 'object' && sent !== null ? JSON.parse(JSON.stringify(sent)) : sent
}

async function create(step: Step, sent: ReadonlyMap<string, unknown>, faults: Faults): Promise<Settled> {
  const { model, path } = step
  const values: Record<string, unknown> = {}
  const generated: Record<string, string> = {}
  for (const member of model.members.values()) {
    const { name, required, initial, makeUp } = member
    if (sent.has(name)) values[name] = sent.get(name)
    else if (required) faults.add([...path, name], 'This member is required.')
    else if (makeUp !== undefined) values[name] = generated[name] = makeUp()
    else values[name] = initial ?? null
  }
  const settled: Settled = { action: 'create', values, changed: [...model.members.keys()], generated }
  const isSound = !faults.any && ![...sent.values()].includes(undefined)
  // Only a sound row is completed, and one that waits for that cannot be held against its rules.
  if (model.complete !== undefined && !isSound) return settled
  const whole = model.complete === undefined ? values : await model.complete(values)
  checkRules(step, whole, faults)
  return { ...settled, values: whole }
}

/** What is wrong with a member by itself is told already: a rule has nothing to add to it. */
function checkRules({ model, path }: Step, values: Values, faults: Faults): void {
  model.rules?.(values, (at, message) => {
    const [member] = at
    if (member === undefined || values[member] !== undefined) faults.add([...path, ...at], message)
  })
}
