import type { Permission } from '../permissions.ts'
import type { FieldOf } from '../views/view.ts'
import type { Expression, Filter } from './filters.ts'
import type { ListedModel } from './tables.ts'

/** A list, and a request for it. */

/** The rows of a list, and its orders. */
export type Listed<Model extends ListedModel = ListedModel> = {
  readonly view: { readonly model: Model }
  /**
   * The source of the list's size when nothing narrows it. `kept`: triggers on the table keep it in `row_counts`
   * (docs/adr/0012-lists-know-their-size.md). `rows`: its rows are counted. `capped`: rows are counted as far as `mostCounted`,
   * whether the list is narrowed or not, and the answer says when there are more
   * (docs/adr/0084-lists-of-the-ledger-count-so-far.md).
   */
  readonly count: 'kept' | 'rows' | 'capped'
  /** The text that is searched: every term of `search` must be in it. */
  readonly search: Expression
  /** The names that `ordering` may hold. */
  readonly order: Readonly<Record<string, FieldOf<Model>>>
  /** Callers without the permission see their own rows only; if none is named, all callers do. */
  readonly own?: { readonly field: FieldOf<Model>; readonly unless?: `view_${string}` }
  /** A boolean field that is true of all rows of the list. */
  readonly always?: FieldOf<Model>
  readonly visible?: Visible<FieldOf<Model>>
  readonly owned?: Owned
}

/** The rows of owners: callers whose rights are bound to owners see only rows of these. */
export type Owned = {
  /** The permission with which callers see all rows, if they hold it for all owners. */
  readonly unless: Permission
  /** The owner of a row of the list, in SQL. */
  readonly sql: string
  /** The rows that they see all the same, in SQL; `{caller}` is their key. */
  readonly or?: string
  /** A condition on each of these rows, in SQL: `{owners}` is a list of texts, `{caller}` their key. */
  readonly and?: string
}

/** A caller sees the rows for whose value of a text field the caller holds the permission. */
export type Visible<Field extends string = string> = {
  readonly field: Field
  /** The permissions by value. */
  readonly permissions: Readonly<Record<string, Permission>>
  /** The field with the owner, for permissions that hold for rows of some owners. */
  readonly owner: Field
  /** A caller with all of these permissions sees rows with other values, too. */
  readonly others?: true
}

/** Consents to the applications of these owners, and those of the caller. */
export const consentsOfOwners: Owned = {
  unless: 'view_application',
  sql: '(SELECT a.owner FROM applications a WHERE a.pk = user_consents.application_pk)',
  or: 'user_consents.user_pk = {caller}',
}

export type Sorted = { readonly field: string; readonly descending: boolean }

/** A request for a list. */
export type ListQuery = {
  readonly filters: readonly { readonly name: string; readonly filter: Filter; readonly value: unknown }[]
  readonly terms: readonly string[]
  /** The owner's key; undefined: all owners. */
  readonly own: number | null | undefined
  /** The values of the field in `visible`; undefined: all. */
  readonly values: readonly string[] | undefined
  /** Further values with the rows of one owner: `oauth2@team-a`. */
  readonly bound: readonly string[]
  /** The owners of `owned`; undefined: all, and rows without one. */
  readonly owners: readonly string[] | undefined
  /** The key of the caller. */
  readonly caller: number | null
  readonly ordering: readonly Sorted[]
  /** Whether its statement is prepared: without filters, terms, orders and pages, which make any number of texts. */
  readonly isPlain: boolean
  readonly page: number
  readonly page_size: number
  /** The most rows that are counted: of a list whose count is capped, and on the pages of operators. */
  readonly mostCounted?: number
  /** Only rows behind the one with these values of the fields of the order. They are counted all the same. */
  readonly behind?: readonly unknown[]
}

/** Rows of a page without `page_size`. */
export const usualPageSize = 100
