import type { Field } from '../../models/define.ts'
import type { Registry } from '../../models/registry.ts'

/** An entry on its way into a document of ours. */
export type Draft = {
  /** The index in the document. */
  readonly entry: number
  readonly model: string
  /** What it is called there; empty when only a key tells. */
  readonly name: string
  /** What `!KeyOf` names it by: its own id, or one that it is given. */
  readonly id: string
  /** What the entry is applied without, each with the reason. */
  readonly leftOut: string[]
  /** What says nothing here, so that the entry is the same without it. */
  readonly ignored: string[]
  /** Why it cannot be applied. */
  readonly reasons: string[]
  /** With our names of models; undefined when it cannot be read as an entry. */
  fields?: Readonly<Record<string, unknown>>
  /** Where the items stood that are left of a list, by field. */
  readonly places: Map<string, readonly number[]>
}

type Attrs = Readonly<Record<string, unknown>>

export const attrsOf = ({ fields }: Draft): Attrs => Object(fields?.attrs)

export const fieldsIn = (draft: Draft, registry: Registry): ReadonlyMap<string, Field> | undefined =>
  registry.byName(String(draft.fields?.model))?.fields

/**
 * Leaves items out of a list. Where none is left, the field is left out: an empty list would take away what stands.
 *
 * @param whyOf the reason; undefined to keep the item, and empty for one that says nothing more
 */
export function withoutItems(
  draft: Draft,
  name: string,
  list: readonly unknown[],
  whyOf: (item: unknown, index: number) => string | undefined,
): readonly unknown[] | undefined {
  const places = draft.places.get(name) ?? [...list.keys()]
  const whys = list.map(whyOf)
  for (const [index, why] of whys.entries()) if (why) draft.leftOut.push(`${name}.${places[index]}: ${why}`)
  const isKept = (_: unknown, index: number) => whys[index] === undefined
  draft.places.set(name, places.filter(isKept))
  const kept = list.filter(isKept)
  return kept.length > 0 || list.length === 0 ? kept : undefined
}

/** The same in the fields of an entry that was read. */
export function dropItems(
  draft: Draft,
  name: string,
  field: Field | undefined,
  whyOf: (item: unknown, index: number) => string | undefined,
): void {
  const { [name]: list, ...others } = attrsOf(draft)
  if (!Array.isArray(list)) return
  const kept = withoutItems(draft, name, list, whyOf)
  if (kept === undefined && field?.required) draft.reasons.push(`${name} is required, and cannot be left out`)
  draft.fields = { ...draft.fields, attrs: kept === undefined ? others : { ...attrsOf(draft), [name]: kept } }
}
