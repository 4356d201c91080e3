import type { EntryState } from '../document/document.ts'
import type { FieldError, FieldPath } from '../errors.ts'
import type { Model } from '../models/define.ts'
import type { ListEdit } from './list-edit.ts'

/** A row in messages to a caller who may not view it: by the values that its entry sent. */
export function nameSent({ model, identifiers, attrs }: Pick<Step, 'model' | 'identifiers' | 'attrs'>): string {
  const [[field = 'pk'] = []] = model.identifiers
  const sent = attrs.get(field) ?? identifiers.get(field) ?? identifiers.values().next().value
  return `${model.displayName} ${JSON.stringify(sent)}`
}

/** One entry, checked against its model. References by tag or name are not replaced yet: only the database knows their keys. */
export type Step = {
  readonly id: string | undefined
  /** The index of the entry in the document. A step that follows from the document has none. */
  readonly entry?: number
  readonly model: Model
  readonly state: EntryState
  readonly identifiers: ReadonlyMap<string, unknown>
  readonly attrs: ReadonlyMap<string, unknown>
  /** The time for which an earlier secret stays valid when the entry changes it, by field: `hours=24`. */
  readonly overlaps?: ReadonlyMap<string, string>
  /** The path at which the entry's errors are reported: `['provider']`, or `['entries', 3]`. */
  readonly path: FieldPath
  /** The errors of conditions that cannot be evaluated. */
  readonly conditionErrors?: readonly FieldError[]
  /** The conditions that need the database. The step is skipped unless all are true. */
  readonly conditions?: readonly unknown[]
  /** The name that the row had before. */
  readonly was?: string
  /** The label under which its row is managed, or null for none; undefined: that of the request. */
  readonly owner?: string | null
  /** Whether its row stays without its stack, once it leaves the files. */
  readonly retain?: true
  /** Whether a missing row is an error: the entry may not create it. */
  readonly mustExist?: true
  /** Whether the run of a former document left the row unchanged: the entry may not create it. */
  readonly isLeft?: boolean
  /**
   * Of a row that is left over: rows that the database would delete with it, and that refuse its deletion, by model and key. All
   * other references refuse it, too.
   */
  readonly heldBy?: ReadonlySet<string>
  /** The rows of a rename, once they were looked up: only that with the old name, or one with each name. */
  readonly rename?: 'old' | 'both'
  /** Lists of references that it adds to and removes from, with keys. `attrs` have the lists that result. */
  readonly edits?: ReadonlyMap<string, ListEdit>
  /** Fields that it sends only because no entry names them: `reset`. */
  readonly reset?: ReadonlySet<string>
}

/** The sets of fields, among those that an entry names, that find one row. */
export const waysToFind = ({ identifiers, unique }: Model, named: readonly string[]): readonly (readonly string[])[] =>
  [['pk'], ...identifiers, ...unique.map((name) => [name])].filter((way) => way.every((name) => named.includes(name)))

/** `entry 3 (application "x") skipped: its conditions are false` @param isLeft the former run did not execute it */
export function skippedLine(index: number, displayName: string, [first]: readonly unknown[], isLeft = false): string {
  const name = first === undefined ? '' : ` ${JSON.stringify(first)}`
  return `entry ${index} (${displayName}${name}) skipped: ${isLeft ? 'the former run did not execute it' : 'its conditions are false'}`
}
