import type { Queryable } from '../db/client.ts'
import type { Keyring } from '../db/seal.ts'
import { Faults } from '../errors.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/index.ts'
import { type Actor, allows, type Permission } from '../permissions.ts'
import { lookAt, suffices } from './ahead.ts'
import type { Step } from './compile.ts'
import { derive } from './derive.ts'
import type { Look } from './look.ts'
import { type Keys, resolveTags } from './resolve.ts'
import { nothing, type Settled, settle } from './settle.ts'
import { columnOf, labelColumn, type Row } from './statements.ts'

export type Engine = {
  readonly registry: Registry
  readonly keyring: Keyring
  /** How far ahead a token may expire, unless a superuser says so. */
  readonly tokenMaxDays: number
}

/** What an entry turns out to do, before it does it. */
export type Finding = Settled & {
  readonly step: Step
  readonly row: Row | undefined
  /** The row belongs to another model: it is not what later entries mean by this one. */
  readonly isForeign: boolean
  /** How messages call the row. */
  readonly label: string
  /** The key that a new row will have, where that is known already. */
  readonly pk: string | number | undefined
  readonly faults: Faults
}

/**
 * Says what one entry would do, from what was seen of the database. Reads only: the API asks before it queues, and so
 * does the worker before it refuses, which then has the same faults in the same words
 * (docs/adr/0005-one-look-per-entry.md).
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
  const isAmbiguous = seen.rows.length > 1
  if (isAmbiguous) faults.add(path, `The identifiers match more than one ${model.noun}.`)
  const isForeign = row !== undefined && refuseForeign(engine.registry, step, row, label, faults)
  checkReferences(step, seen, sent, faults)
  checkUnique(step, seen, row, faults)
  const base = { step, row, isForeign, label, faults, pk: keyOfNew(step, identifiers, seen, faults) }
  if (isAmbiguous) return { ...base, ...nothing }
  // Under a name of its own, which it needs, the entry would be new: that is what the rest of it is judged as.
  const own = isForeign ? undefined : row
  const settled = await settle(step, own, sent, engine.keyring, faults)
  return { ...base, ...(await derive(q, step, own, settled, engine, faults)) }
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
    // Looked up, not looked for: ten thousand keys that are not there must not take long.
    const missing = new Set<unknown>(seen.missing[reference?.family ?? ''])
    if (reference === undefined || missing.size === 0) continue
    const keys: unknown[] = Array.isArray(value) ? value : [value]
    for (const [index, key] of keys.entries()) {
      if (missing.has(key))
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
      // What has an owner is named to nobody who did not name it himself: it may be another's.
      const isToldByName = model.owner === undefined || label === value
      const holder = isToldByName ? `${model.noun} ${JSON.stringify(label)}` : `another ${model.noun}`
      faults.add([...path, name], `${held} ${holder}.`)
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

/**
 * What is somebody's own stays when nobody acts as him any longer: whoever does needs the permission himself, own or not.
 *
 * @returns the permission that the actor lacks for this finding, if any
 */
export function lacking(actor: Actor, finding: Finding): Permission | null {
  const needed = permissionFor(finding)
  if (needed === null) return null
  const { impersonator } = actor
  const isBorrowed = finding.step.model.owner !== undefined && impersonator !== undefined
  if (isBorrowed && !allows(impersonator, needed)) return needed
  return allows(actor, needed) || isOwn(actor, finding) ? null : needed
}

/**
 * Whether the row is the actor's own: as it is, or, a new one, as it will be. One whose owner nobody can read is never
 * written: it is refused for that, and not for whose it is.
 */
export function isOwn({ pk }: Actor, { step: { model }, row, values }: Finding): boolean {
  if (model.owner === undefined || pk === null) return false
  if (row !== undefined) return row[columnOf(model, model.owner)] === pk
  return values[model.owner] === pk || values[model.owner] === undefined
}
