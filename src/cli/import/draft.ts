import { isTag } from '../../document/tags.ts'
import type { FieldPath } from '../../errors.ts'
import { isObject, type JsonObject } from '../../json-object.ts'
import type { Field, Model } from '../../models/define.ts'
import type { OwnModel } from './names.ts'

/** An entry that is being converted for a document of this service. */
export type Draft = {
  /** The index in the document. */
  readonly entry: number
  readonly model: string
  /** The model that it has here, if any. */
  readonly ours: OwnModel | undefined
  /** Its name there; empty when only a key finds it. */
  readonly name: string
  /** The id for `!KeyOf`: its own, or one that it is given. */
  readonly id: string
  readonly sent: unknown
  readonly state: unknown
  /** The attributes and identifiers that were sent. */
  readonly fields: JsonObject
  /** The parts that are left out of the entry, each with the reason. */
  readonly leftOut: string[]
  /** The parts without a meaning here: the entry is the same without them. */
  readonly ignored: string[]
  /** The reasons why it cannot be applied. */
  readonly reasons: string[]
  /** The converted entry; undefined when it cannot be read as one. */
  own?: Own
}

export type Own = {
  readonly model: Model
  /** All fields but the model and the attributes. */
  readonly fields: JsonObject
  /** The attributes. Those of an edit of a list are `users.add` and `users.remove`. Lists have `dropped` for items left out. */
  readonly attrs: Record<string, unknown>
}

/** The fields of an object; none for another value, and for a tag. */
export const fieldsOf = (value: unknown): JsonObject => (isObject(value) && !isTag(value) ? value : {})

/** `redirect_uris.0: May not be empty.` */
export const sentence = (path: FieldPath, message: string): string =>
  path.length === 0 ? message : `${path.join('.')}: ${message}`

/** The field of an attribute: `users`, or `users.add`. */
export const fieldFor = ({ model }: Own, name: string): Field | undefined => model.fields.get(name.split('.')[0] ?? '')

/** Stands in a list for an item that is left out, so that the others keep their places. */
export const dropped = Symbol('dropped')

/** The indexes of the items that are left in a list. */
export const leftIn = (list: readonly unknown[]): number[] =>
  [...list.keys()].filter((index) => list[index] !== dropped)

/**
 * Leaves items out of a list. The field is left out where no item is left: an empty list would remove the present items.
 *
 * @param whyOf the reason; undefined to keep the item, and empty for one without further effect
 */
export function dropItems(
  draft: Draft,
  name: string,
  whyOf: (item: unknown, index: number) => string | undefined,
): void {
  const list = draft.own?.attrs[name]
  if (draft.own === undefined || !Array.isArray(list)) return
  const items = [...list]
  for (const index of leftIn(list)) {
    const why = whyOf(list[index], index)
    if (why) draft.leftOut.push(`${name}.${index}: ${why}`)
    if (why !== undefined) items[index] = dropped
  }
  draft.own.attrs[name] = items
  if (list.length > 0 && leftIn(items).length === 0) leaveOut(draft, name)
}

/** Leaves a field out. @param why the reason; omitted where its items have their own */
export function leaveOut({ own, leftOut, reasons }: Draft, name: string, why?: string): void {
  if (why !== undefined) leftOut.push(`${name}: ${why}`)
  Reflect.deleteProperty(own?.attrs ?? {}, name)
  const needed = own && whyNeeded(own, name)
  if (needed !== undefined) reasons.push(`${name} ${needed}, and cannot be left out`)
}

/** Fields without which a new row is open to more users, or more is deleted: their defaults restrict nothing. */
export const restricting: ReadonlySet<string> = new Set([
  'is_active',
  'type',
  'confirmed',
  'intent',
  'owners',
  'expires',
  'policy_engine_mode',
  'client_type',
  'audience',
  'client_networks',
  'verification_kp',
  'encryption_kp',
  'encryption_key',
  'delete_token_on_disconnect',
  'filter_group',
  'exclude_users_service_account',
  'user_delete_action',
  'group_delete_action',
])

/** @returns the reason why an entry is not applied without a field */
export function whyNeeded(own: Own, name: string): string | undefined {
  const field = fieldFor(own, name)
  if (field?.required || Object.hasOwn(Object(own.fields.identifiers), name)) return 'is required'
  if (field?.secret) return 'is a secret that would be replaced'
  return field !== undefined && restricting.has(name) ? 'restricts what is allowed' : undefined
}

/** Leaves a field inside of a field out. */
export function dropInside({ own, leftOut }: Draft, name: string, path: readonly (string | number)[]): void {
  const holder = path.slice(0, -1).reduce<unknown>((inner, part) => Reflect.get(Object(inner), part), own?.attrs[name])
  Reflect.deleteProperty(Object(holder), path.at(-1) ?? '')
  leftOut.push(`${[name, ...path].join('.')}: Unknown field.`)
}
