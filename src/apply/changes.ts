import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Keyring } from '../db/seal.ts'
import { Find, KeyOf } from '../document/document.ts'
import type { Field } from '../models/define.ts'
import { expiresOf } from '../models/overlap.ts'
import type { Effect } from '../plan/effect.ts'
import { Named } from '../plan/named.ts'
import { endOfOverlap, keysOf } from '../plan/storage.ts'

/** Of a secret: only whether it changes. */
const fieldChange = z.union([z.object({ from: z.unknown(), to: z.unknown() }), z.enum(['changed', 'unchanged'])]).meta({
  description:
    'From -> to. Only whether it changes, of a secret. `{"set_by_server": true}` as `to`: a generated or computed value. `{"not_shown": true}` as `from`: the submitter may not view such rows, or the caller not what another owner had.',
})

/**
 * What an entry changes, field by field, as plans and runs show it. A plan and the apply of the same document have equal
 * changes: what only an apply knows (new keys, generated values, the time) is replaced by a marker. It holds no secret.
 */
export const change = z
  .object({
    model: z.string(),
    key: z.record(z.string(), z.unknown()).meta({ description: 'The identifiers of the entry.' }),
    action: z.enum(['create', 'update', 'unchanged', 'delete']),
    fields: z.record(z.string(), fieldChange),
  })
  .meta({ id: 'Change' })

/** The old value of a row that the submitter, or a reader of the run, may not view. */
export const notShown = { not_shown: true } as const

export type Change = z.output<typeof change>
type FieldChange = z.output<typeof fieldChange>

/** The new value of a field that the service generates or computes. */
export const setByServer = { set_by_server: true } as const

/**
 * @param tags of the rows that the document has made by now
 * @param owner the label that the row gets; undefined when it keeps its own
 */
export function describeChange(effect: Effect, tags: Tags, owner: string | null | undefined): Change {
  const { step, action, row } = effect
  const fields: Record<string, FieldChange> = {}
  for (const field of step.model.fields.values()) {
    const change = changeOfField(field, effect, tags)
    if (change !== undefined) fields[field.name] = change
    const end = change === 'changed' ? changeOfOverlap(field, effect) : undefined
    if (end !== undefined) fields[expiresOf(field.name)] = end
  }
  if (owner !== undefined && row !== undefined)
    fields.owner = { from: effect.isHidden ? notShown : (row.owner ?? null), to: owner }
  const isUpdate = action === 'update' || fields.owner !== undefined
  return {
    model: step.model.name,
    key: Object.fromEntries([...step.identifiers].map(([name, value]) => [name, asText(value)])),
    action: isUpdate ? 'update' : action === 'leave' ? 'unchanged' : action,
    fields,
  }
}

/** Tags stand as they are written in a document. */
const asText = (value: unknown): unknown =>
  value instanceof KeyOf
    ? `!KeyOf ${value.id}`
    : value instanceof Find
      ? `!Find ${value.model} ${JSON.stringify(value.identifiers)}`
      : value instanceof Named
        ? value.name
        : value

/** `!KeyOf id` by the key of a row that this document creates: in a plan it has no key yet. */
type Tags = ReadonlyMap<unknown, string>

function changeOfField(field: Field, effect: Effect, tags: Tags): FieldChange | undefined {
  const { name, secret } = field
  const { action, before, values, changed, sent, isHidden } = effect
  const isChanged = action === 'create' ? (values[name] ?? null) !== null : changed.includes(name)
  if (action !== 'create' && action !== 'update' && action !== 'unchanged') return undefined
  if (secret) return isChanged ? 'changed' : sent.has(name) && before !== undefined ? 'unchanged' : undefined
  if (!isChanged) return undefined
  const isDefault = action === 'create' && isDeepStrictEqual(values[name], field.initial ?? null)
  const isGenerated = effect.generated[name] !== undefined
  const to = (sent.has(name) && !isGenerated) || isDefault ? inDocument(field, values[name], tags) : setByServer
  return { from: isHidden && before !== undefined ? notShown : (before?.[name] ?? null), to }
}

/** Until when the secret before is valid: the time is known at the apply. */
function changeOfOverlap({ name, overlap }: Field, { row, values, isHidden }: Effect): FieldChange | undefined {
  if (!overlap || row === undefined) return undefined
  if (isHidden) return values[expiresOf(name)] === undefined ? undefined : { from: notShown, to: setByServer }
  const from = endOfOverlap(row, name)
  const to = values[expiresOf(name)] === undefined ? null : setByServer
  return from === null && to === null ? undefined : { from, to }
}

function inDocument({ reference }: Field, value: unknown, tags: Tags): unknown {
  if (reference === undefined) return value
  const shown = keysOf(value).map((key) => tags.get(key) ?? key)
  return Array.isArray(value) ? shown : (shown[0] ?? null)
}

/**
 * A digest of the row that an entry looked at, and of what it does to it. Secrets are part of it, so it is keyed.
 *
 * @returns 16 characters
 */
export function digestOfEntry({ before, row, change }: Effect & { readonly change: Change }, keyring: Keyring): string {
  const origin = row === undefined ? null : [row.pk, row.owner ?? null, row.created_by ?? null]
  const looked = JSON.stringify([change, origin, before ?? row ?? null])
  return keyring.digest('plan', looked).toString('base64url').slice(0, 16)
}
