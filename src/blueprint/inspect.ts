import { isDeepStrictEqual } from 'node:util'
import type { Queryable } from '../db/client.ts'
import type { Keyring } from '../db/seal.ts'
import { Faults } from '../errors.ts'
import type { Member, Model, Values } from '../models/define.ts'
import type { Registry } from '../models/index.ts'
import { type Actor, allows, type Permission } from '../permissions.ts'
import { lookAt, suffices } from './ahead.ts'
import type { Step } from './compile.ts'
import type { Look } from './look.ts'
import { type Keys, resolveTags } from './resolve.ts'
import { keysOf, unpack } from './rows.ts'
import { labelColumn, type Row } from './statements.ts'

export type Engine = { readonly registry: Registry; readonly keyring: Keyring }

export type Action = 'create' | 'update' | 'unchanged' | 'delete' | 'leave'

/** What an entry turns out to do, before it does it. */
export type Finding = {
  readonly step: Step
  readonly action: Action
  readonly row: Row | undefined
  /** The row belongs to another model: it is not what later entries mean by this one. */
  readonly isForeign: boolean
  /** The whole row as it will be. */
  readonly values: Values
  /** Members that differ, in the model's order. */
  readonly changed: readonly string[]
  /** Values that the service made up. */
  readonly generated: Readonly<Record<string, string>>
  /** How messages call the row. */
  readonly label: string
  /** The key that a new row will have, where that is known already. */
  readonly pk: string | number | undefined
  readonly faults: Faults
}

/**
 * Looks at the database and says what one entry would do. Reads only: the API asks before it queues, the worker asks
 * again inside its transaction, and both get the same faults in the same words.
 *
 * @param ahead what `lookAhead` saw of this entry already
 */
export async function inspect(q: Queryable, engine: Engine, step: Step, keys: Keys, ahead?: Look): Promise<Finding> {
  const faults = new Faults()
  const { model, path } = step
  const identifiers = await resolveTags(q, engine.registry, step.identifiers, { keys, path, faults })
  const attrs = await resolveTags(q, engine.registry, step.attrs, { keys, path, faults })
  const sent = new Map([...identifiers, ...attrs].filter(([name]) => name !== 'pk'))
  const seen =
    ahead !== undefined && suffices(ahead, step, sent, keys)
      ? ahead
      : await lookAt(q, engine.registry, step, identifiers, sent)
  const [row] = seen.rows
  const label = labelOf(model, row, sent, identifiers)
  if (seen.rows.length > 1) faults.add(path, `The identifiers match more than one ${model.noun}.`)
  const isForeign = row !== undefined && refuseForeign(engine.registry, step, row, label, faults)
  checkReferences(step, seen, sent, faults)
  checkUnique(step, seen, row, faults)
  const base = { step, row, isForeign, label, faults, pk: keyOfNew(step, identifiers, seen, faults) }
  if (faults.any && row !== undefined) return { ...base, action: 'leave', values: {}, changed: [], generated: {} }
  return { ...base, ...(await settle(step, row, sent, engine, faults)) }
}

/** A UUID may be chosen by whoever writes the document; a number is the database's to give. */
function keyOfNew(
  { model, path, state }: Step,
  identifiers: ReadonlyMap<string, unknown>,
  { rows, fresh }: Look,
  faults: Faults,
): string | number | undefined {
  const pk = identifiers.get('pk')
  if (model.key === 'uuid') return typeof pk === 'string' ? pk : undefined
  if (typeof pk === 'number' && rows.length === 0 && state !== 'absent')
    faults.add([...path, 'pk'], `There is no ${model.noun} with the key ${pk}.`)
  return fresh ?? undefined
}

/** Kinds share a table and its names: a row of another kind is somebody else's. */
function refuseForeign(
  registry: Registry,
  { model, path, identifiers }: Step,
  row: Row,
  label: string,
  faults: Faults,
): boolean {
  const foreign = Object.entries(model.fixed).some(([column, value]) => row[column] !== value)
  if (!foreign) return false
  const owner = registry.models.find(
    (other) =>
      other.table === model.table && Object.entries(other.fixed).every(([column, value]) => row[column] === value),
  )
  const [member = 'pk'] = identifiers.keys()
  faults.add(
    [...path, member],
    `${JSON.stringify(label)} is the name of a ${owner?.noun ?? 'row of another kind'}: choose another.`,
  )
  return true
}

function checkReferences({ model, path }: Step, seen: Look, sent: ReadonlyMap<string, unknown>, faults: Faults): void {
  for (const [name, value] of sent) {
    const reference = model.members.get(name)?.reference
    const missing = seen.missing[reference?.family ?? '']
    if (reference === undefined || missing === undefined || missing.length === 0) continue
    const keys = keysOf(value)
    for (const [index, key] of keys.entries()) {
      if (missing.includes(key))
        faults.add(
          [...path, name, ...(Array.isArray(value) ? [index] : [])],
          `There is no ${reference.family} with the key ${key}.`,
        )
    }
  }
}

function checkUnique({ model, path }: Step, seen: Look, row: Row | undefined, faults: Faults): void {
  for (const [name, holders] of Object.entries(seen.taken)) {
    for (const { pk, label, value } of holders) {
      if (pk === row?.pk) continue
      const reference = model.members.get(name)?.reference
      const held =
        reference === undefined ? `${JSON.stringify(value)} is taken by` : `The ${reference.family} ${value} belongs to`
      faults.add([...path, name], `${held} ${model.noun} ${JSON.stringify(label)}.`)
    }
  }
}

function labelOf(
  model: Model,
  row: Row | undefined,
  sent: ReadonlyMap<string, unknown>,
  identifiers: ReadonlyMap<string, unknown>,
): string {
  if (row !== undefined) return String(row[labelColumn(model)])
  const [[first = 'pk'] = []] = model.identifiers
  return String(sent.get(first) ?? identifiers.get('pk') ?? '')
}

type Settled = Pick<Finding, 'action' | 'values' | 'changed' | 'generated'>

/** Decides between creating, updating and leaving alone, and checks what the row would become. */
async function settle(
  step: Step,
  row: Row | undefined,
  sent: ReadonlyMap<string, unknown>,
  { keyring }: Engine,
  faults: Faults,
): Promise<Settled> {
  const { model, state, path } = step
  const nothing: Settled = { action: 'leave', values: {}, changed: [], generated: {} }
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
  if (!isFaulty(sent)) model.rules?.(values, (at, message) => faults.add([...path, ...at], message))
  return { action: 'update', values, changed: changed.map(({ name }) => name), generated: {} }
}

/** A value that did not compile is undefined: rules that span members cannot be asked then. */
const isFaulty = (sent: ReadonlyMap<string, unknown>): boolean => [...sent.values()].includes(undefined)

/** A link is a set; everything else is compared as it stands. */
function isSame({ place }: Member, stored: unknown, sent: unknown): boolean {
  if (place.in === 'link' && Array.isArray(stored) && Array.isArray(sent)) {
    return stored.length === sent.length && stored.every((key) => sent.includes(key))
  }
  return isDeepStrictEqual(stored, sent) || isDeepStrictEqual(stored, asStored(sent))
}

/** What is stored has been through JSON, which knows no minus zero. */
function asStored(sent: unknown): unknown {
  if (typeof sent === 'number') return sent + 0
  return typeof sent === 'object' && sent !== null ? JSON.parse(JSON.stringify(sent)) : sent
}

async function create({ model, path }: Step, sent: ReadonlyMap<string, unknown>, faults: Faults): Promise<Settled> {
  const values: Record<string, unknown> = {}
  const generated: Record<string, string> = {}
  for (const member of model.members.values()) {
    const { name, required, initial, makeUp } = member
    if (sent.has(name)) values[name] = sent.get(name)
    else if (required) faults.add([...path, name], 'This member is required.')
    else if (makeUp !== undefined) values[name] = generated[name] = makeUp()
    else values[name] = initial ?? null
  }
  if (faults.any || isFaulty(sent)) return { action: 'create', values, changed: [], generated }
  const whole = model.complete === undefined ? values : await model.complete(values)
  model.rules?.(whole, (at, message) => faults.add([...path, ...at], message))
  return { action: 'create', values: whole, changed: [...model.members.keys()], generated }
}

/** The permission that a finding's action needs; null when it does nothing. */
export function permissionFor({ action, step }: Finding): Permission | null {
  switch (action) {
    case 'create':
      return `add_${step.model.resource}`
    case 'update':
    case 'unchanged':
      return `change_${step.model.resource}`
    case 'delete':
      return `delete_${step.model.resource}`
    case 'leave':
      return null
    default:
      return action satisfies never
  }
}

/** What a person is told that he may not do: finding all as it should be is an update with nothing to write. */
export const verbOf = ({ action }: Finding): string => (action === 'unchanged' ? 'update' : action)

/** @returns the permission that the actor lacks for this finding, if any */
export function lacking(actor: Actor, finding: Finding): Permission | null {
  const needed = permissionFor(finding)
  return needed === null || allows(actor, needed) ? null : needed
}
