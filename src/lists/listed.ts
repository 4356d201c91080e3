import type { FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Need } from '../http/documented.ts'
import type { Access, Actor, Permission } from '../permissions.ts'
import type { FieldOf, View } from '../views/view.ts'
import type { Bind, Filter } from './filters.ts'
import type { ListedModel } from './tables.ts'

/** A list, and a request for it. */

/** The declaration of a list: the route, its parameters and its statements are made of it. */
export type ListSpec<Model extends ListedModel = ListedModel> = {
  readonly path: string
  readonly permission: Access
  readonly summary: string
  readonly description?: string
  readonly view: View<Model>
  /**
   * The source of the list's size when nothing narrows it. `kept`: triggers on the table keep it in `row_counts`
   * (docs/adr/0012-lists-know-their-size.md). `rows`: its rows are counted. `capped`: rows are counted as far as `mostCounted`,
   * whether the list is narrowed or not, and the answer says when there are more
   * (docs/adr/0084-lists-of-the-ledger-count-so-far.md).
   */
  readonly count: 'kept' | 'rows' | 'capped'
  /** A condition in SQL that every term of `search` must meet, as `{pattern}` of LIKE. */
  readonly search: string
  /** The names that `ordering` may hold. */
  readonly order: Readonly<Record<string, FieldOf<Model>>>
  /** The order in the form of `ordering`. */
  readonly defaultOrder: string
  /** The field of a related object that an order compares, for the description. */
  readonly compared?: Readonly<Record<string, string>>
  readonly filters: Readonly<Record<string, Filter<FieldOf<Model>>>>
  readonly include?: Include
  /** What a request does before the list is read, with parameters of its own. It may set another `actor`. */
  readonly before?: {
    readonly parameters: Readonly<Record<string, z.ZodType>>
    /** The parameter with which it waits. */
    readonly laterBy: string
    readonly answerHeaders: readonly string[]
    run(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
  /** Callers without the permission see their own rows only. */
  readonly own?: { readonly field: FieldOf<Model>; readonly unless: `view_${string}` }
  /** Narrows the rows that a caller sees, as a condition in SQL that `conditions.ts` makes; null: it does not. */
  readonly seen?: (actor: Actor, bind: Bind) => string | null
  /** A permission without which a search finds only rows of the caller: the searched text is not shown to others. */
  readonly searchNeeds?: Permission
  /** Permissions that show more, beside those of `own` and `include`. */
  readonly alsoNeeds?: readonly Need[]
}

/** Related objects that a caller may leave out. */
type Include = {
  /** The parameter, such as `include_groups`. */
  readonly parameter: string
  /** The field that is null without them. */
  readonly field: string
  /** A caller without this permission does not get `field`. */
  readonly permission?: Permission
}

export type Sorted = { readonly field: string; readonly descending: boolean }

/** A request for a list. */
export type ListQuery = {
  readonly actor: Actor
  readonly filters: readonly { readonly name: string; readonly filter: Filter; readonly value: unknown }[]
  readonly terms: readonly string[]
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
