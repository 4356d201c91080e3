import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { Find, KeyOf } from '../document/document.ts'
import { own } from '../json-object.ts'
import type { Field } from '../models/define.ts'
import { expiresOf } from '../models/overlap.ts'
import type { Effect } from '../plan/effect.ts'
import { itemsOf, type ListEdit } from '../plan/list-edit.ts'
import { Named } from '../plan/named.ts'
import { endOfOverlap, keysOf } from '../plan/storage.ts'

/** The change of a field; of a secret, only whether it changes. */
const fieldChange = z
  .union([z.object({ from: z.unknown(), to: z.unknown() }), z.enum(['changed', 'unchanged']).meta({ title: 'Fields' })])
  .meta({
    description:
      'From -> to. Only whether it changes, of a secret. `{"set_by_server": true}`: a generated or computed value. `{"not_shown": true}` as `from`: the submitter may not view such rows, or the caller not what another owner had.',
  })

/**
 * The change of an entry, field by field, as plans and runs show it. A plan and the apply of the same document have equal
 * changes: values that only an apply has (new keys, generated values, the time) are replaced by a marker. It holds no secret.
 */
export const change = z
  .object({
    model: z.string(),
    key: z.record(z.string(), z.unknown()).meta({ description: 'The identifiers of the entry.' }),
    action: z.enum(['create', 'update', 'unchanged', 'delete']),
    fields: z.record(z.string(), fieldChange),
    entry: z.int().nonnegative().nullable().optional().meta({
      description:
        'The index of its entry in the document. Left out where it is the one behind that of the change before (0 for the first). Null for what follows from the whole document, such as what is left over in the stack.',
    }),
  })
  .meta({ id: 'Change' })

/** The old value of a row that the submitter, or a reader of the run, may not view. */
export const notShown = { not_shown: true } as const

export type Change = z.output<typeof change>
type FieldChange = z.output<typeof fieldChange>

/** The new value of a field that the service generates or computes. */
export const setByServer = { set_by_server: true } as const

/** The values that earlier entries of the document have written by now. */
export type Earlier = {
  /** `!KeyOf id` for the key, in this field, of a row that the document creates: a plan has no key for it yet. */
  readonly tagOf: (field: Field, key: unknown) => string | undefined
  /** The values that the row itself was given, as the changes show them; undefined when no earlier entry wrote it. */
  readonly given?: Readonly<Record<string, unknown>> | undefined
}

/** @param owner the label that the row gets; undefined when it keeps its own */
export function describeChange(effect: Effect, earlier: Earlier, owner: string | null | undefined): Change {
  const { step, action, row } = effect
  const fields: Record<string, FieldChange> = {}
  for (const field of step.model.fields.values()) {
    const change = changeOfField(field, effect, earlier)
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

function changeOfField(field: Field, effect: Effect, { tagOf, given = {} }: Earlier): FieldChange | undefined {
  const { name, secret } = field
  const { action, before, values, changed, sent, isHidden } = effect
  const isChanged = action === 'create' ? (values[name] ?? null) !== null : changed.includes(name)
  if (action !== 'create' && action !== 'update' && action !== 'unchanged') return undefined
  if (secret) return isChanged ? 'changed' : sent.has(name) && before !== undefined ? 'unchanged' : undefined
  if (!isChanged) return undefined
  const isDefault = action === 'create' && isDeepStrictEqual(values[name], field.initial ?? null)
  const isGenerated = effect.generated[name] !== undefined
  const edit = before === undefined ? undefined : effect.step.edits?.get(name)
  const shown = (value: unknown) => (edit === undefined ? value : itemsNamed(value, edit))
  const to = (sent.has(name) && !isGenerated) || isDefault ? inDocument(field, shown(values[name]), tagOf) : setByServer
  if (isHidden && before !== undefined) return { from: notShown, to }
  return { from: own(given, name) ?? asStored(field, shown(before?.[name] ?? null), tagOf), to }
}

/** The items of an edited list that the document names: the row may have very many others, or the caller may not view them. */
function itemsNamed(list: unknown, edit: ListEdit): unknown {
  const named = new Set(itemsOf(edit))
  return itemsOf(list).filter((item) => named.has(item))
}

/** The stored value. Links are a set: rows that the document creates stand last, because a plan does not know their keys. */
function asStored(field: Field, value: unknown, tagOf: Earlier['tagOf']): unknown {
  if (field.storage.in !== 'link' || !Array.isArray(value)) return inDocument(field, value, tagOf)
  const known = value.filter((key) => tagOf(field, key) === undefined)
  const created = value.flatMap((key) => tagOf(field, key) ?? [])
  return [...known, ...created.sort()]
}

/** The end of the earlier secret: its time is known at the apply. */
function changeOfOverlap({ name, overlap }: Field, { row, values, isHidden }: Effect): FieldChange | undefined {
  if (!overlap || row === undefined) return undefined
  if (isHidden) return values[expiresOf(name)] === undefined ? undefined : { from: notShown, to: setByServer }
  const from = endOfOverlap(row, name)
  const to = values[expiresOf(name)] === undefined ? null : setByServer
  return from === null && to === null ? undefined : { from, to }
}

function inDocument(field: Field, value: unknown, tagOf: Earlier['tagOf']): unknown {
  if (field.reference === undefined) return value
  const shown = keysOf(value).map((key) => tagOf(field, key) ?? key)
  return Array.isArray(value) ? shown : (shown[0] ?? null)
}

/** The values that a change gives to a row, as it shows them: lists that are edited are read again. */
export const givenBy = ({ fields }: Change, { edits }: Effect['step']): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, change]) =>
      typeof change === 'string' ? [] : [[name, edits?.has(name) ? undefined : change.to]],
    ),
  )

/**
 * The fields that an entry names as it has read them, and the whole row that it deletes, without values that only this transaction knows: keys of rows that the document creates stand
 * as tags. Null for a row that is not there, and for one that an earlier entry wrote: the digest of that entry has its state
 * before.
 */
export function lookedAt(
  { row, before, sent, changed, action, step: { model } }: Effect,
  { tagOf, given }: Earlier,
): unknown {
  if (row === undefined || given !== undefined) return null
  const { links = {}, ...columns } = row
  const isNamed = (name: string) =>
    action === 'delete' || before === undefined || sent.has(name) || changed.includes(name)
  const named = Object.entries(before ?? { ...columns, ...links }).filter(([name]) => isNamed(name))
  const values = named.map(([name, value]) => {
    const field = model.fields.get(name)
    return [name, field?.reference === undefined ? value : withTags(field, value, tagOf)]
  })
  return [row.pk, row.owner ?? null, row.created_by ?? null, values]
}

/** A list in an order that does not depend on the keys. */
const withTags = (field: Field, value: unknown, tagOf: Earlier['tagOf']): unknown =>
  Array.isArray(value) ? value.map((key) => String(tagOf(field, key) ?? key)).sort() : (tagOf(field, value) ?? value)
