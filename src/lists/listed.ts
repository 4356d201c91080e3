import type { Permission } from '../permissions.ts'
import type { FieldOf } from '../views/view.ts'
import type { Filter } from './filters.ts'
import type { ListedModel, Search } from './tables.ts'

/** What a list is, and what a request asks of it. */

/** Which rows a list has, and in which orders. */
export type Listed<Model extends ListedModel = ListedModel> = {
  readonly view: { readonly model: Model }
  /**
   * How the list knows its size when nothing narrows it. `kept`: triggers on the table keep it in `row_counts`
   * (docs/adr/0012-lists-know-their-size.md). `rows`: its rows are counted. `capped`: whatever narrows it, rows are counted
   * as far as `mostCounted`, and the answer says when there are more (docs/adr/0084-lists-of-the-ledger-count-so-far.md).
   */
  readonly count: 'kept' | 'rows' | 'capped'
  /** Every term of `search` must be in it. */
  readonly search: Search
  /** What `ordering` may name. */
  readonly order: Readonly<Record<string, FieldOf<Model>>>
  /** All values, in their order, of fields that have few, and no index of their own: what is ordered by one is read value by value. */
  readonly fewValues?: { readonly [Field in FieldOf<Model>]?: readonly string[] }
  /** Callers without the permission see their own rows only; without a permission, so do all. */
  readonly own?: { readonly field: FieldOf<Model>; readonly unless?: `view_${string}` }
  /** A boolean field that is true of all rows of the list. */
  readonly always?: FieldOf<Model>
  readonly visible?: Visible<FieldOf<Model>>
  readonly owned?: Owned
}

/** Callers whose rights are bound to owners see only rows of these. */
export type Owned = {
  /** With this permission for all owners, callers see all rows. */
  readonly unless: Permission
  /** The owner of a row of the list, in SQL. */
  readonly sql: string
  /** Rows that they see all the same, in SQL; `{caller}` is their key. */
  readonly or?: string
  /** What must hold of each of these rows, in SQL: `{owners}` is a list of texts, `{caller}` their key. */
  readonly and?: string
}

/** A caller sees the rows for whose value of a text field the caller holds the permission. */
export type Visible<Field extends string = string> = {
  readonly field: Field
  /** By value. */
  readonly permissions: Readonly<Record<string, Permission>>
  /** The field with the owner, for permissions that hold for rows of some owners. */
  readonly owner: Field
  /** A caller with all of these permissions sees rows with other values, too. */
  readonly others?: true
}

/** Of the applications of these owners, and of the caller. */
export const consentsOfOwners: Owned = {
  unless: 'view_application',
  sql: '(SELECT a.owner FROM applications a WHERE a.pk = user_consents.application_pk)',
  or: 'user_consents.user_pk = {caller}',
}

export type Sorted = { readonly field: string; readonly descending: boolean }

/** What a request asks of a list. */
export type ListQuery = {
  readonly filters: readonly { readonly name: string; readonly filter: Filter; readonly value: unknown }[]
  readonly terms: readonly string[]
  /** The owner's key; undefined: all owners. */
  readonly own: number | null | undefined
  /** The values of the field in `visible`; undefined: all. */
  readonly values: readonly string[] | undefined
  /** Beside them, values with the rows of one owner: `oauth2@team-a`. */
  readonly bound: readonly string[]
  /** The owners of `owned`; undefined: all, and rows without one. */
  readonly owners: readonly string[] | undefined
  /** The key of the caller. */
  readonly caller: number | null
  readonly ordering: readonly Sorted[]
  /** Nothing that makes any number of texts, as filters, terms and orders do: its statement is prepared. */
  readonly isPlain: boolean
  readonly page: number
  readonly page_size: number
  /** Of more, none is counted: of a list whose count is capped, and on the pages of operators. */
  readonly mostCounted?: number
}

/** Rows of a page unless `page_size` says otherwise. */
export const usualPageSize = 100
