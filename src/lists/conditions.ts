import { allows, ownersFor, ownersShown, type Permission } from '../permissions.ts'
import { type Bind, likeLiterally } from './filters.ts'
import type { ListQuery, ListSpec } from './listed.ts'
import { qualified } from './tables.ts'

type Narrowed = Pick<ListSpec, 'search' | 'searchNeeds' | 'own' | 'seen'> & {
  readonly view: Pick<ListSpec['view'], 'model'>
}
type Narrowing = Pick<ListQuery, 'actor'> & Partial<Pick<ListQuery, 'filters' | 'terms'>>

/**
 * The conditions of a request, and those of the rows that this caller sees at all, in SQL: none for a list that nothing narrows.
 *
 * @param isWalked whether rows are read one by one in an order, because many match
 */
export function conditionsOf(
  { view: { model }, search, searchNeeds, own, seen }: Narrowed,
  { actor, filters = [], terms = [] }: Narrowing,
  bind: Bind,
  isWalked = false,
): string[] {
  const maySearch = terms.length === 0 || searchNeeds === undefined || allows(actor, searchNeeds)
  return [
    ...(own === undefined || (allows(actor, own.unless) && maySearch)
      ? []
      : [`${qualified(model, own.field)} = ${bind(actor.pk)}`]),
    ...[seen?.(actor, bind) ?? []].flat(),
    ...filters.map(({ filter: { on, condition, walked = condition }, value }) => {
      const sql = typeof on === 'string' ? qualified(model, on) : on.sql
      return `(${(isWalked ? walked : condition)(sql, value, bind)})`
    }),
    ...terms.map((term) => {
      const pattern = `lower(${bind(`%${likeLiterally(term)}%`)})`
      return `(${search.replaceAll('{pattern}', () => pattern)})`
    }),
  ]
}

type Seen = NonNullable<ListSpec['seen']>

/**
 * The rows of owners: callers whose rights are bound to owners see only rows of these, without `view_application` for all.
 *
 * @param owner that of a row of the list, in SQL
 * @param or the rows that they see all the same, in SQL; `{caller}` is their key
 * @param and a condition on each of these rows, in SQL: `{owners}` is a list of texts, `{caller}` their key
 */
export const ofOwners =
  (owner: string, or = 'false', and = 'true'): Seen =>
  (actor, bind) => {
    const owners = ownersShown(actor)
    if (owners === null) return null
    const list = `${bind(owners)}::text[]`
    const filled = (text: string) => text.replaceAll('{owners}', list).replaceAll('{caller}', () => bind(actor.pk))
    return `((${owner} = ANY(${list}) OR ${filled(or)}) AND ${filled(and)})`
  }

/** Consents to the applications of these owners, and those of the caller. */
export const consentsOfOwners = ofOwners(
  '(SELECT a.owner FROM applications a WHERE a.pk = user_consents.application_pk)',
  'user_consents.user_pk = {caller}',
)

/**
 * Providers for whose kind the caller holds the permission, for all rows or for those of some owners.
 *
 * @param others whether a caller with all of these permissions sees other kinds, too
 */
export const ofKinds =
  (permissions: Readonly<Record<string, Permission>>, others = false): Seen =>
  (actor, bind) => {
    const kinds = Object.entries(permissions)
    const full = kinds.filter(([, permission]) => allows(actor, permission)).map(([kind]) => kind)
    if (others && full.length === kinds.length) return null
    const isFull = `providers.kind = ANY(${bind(full)}::text[])`
    const bound = kinds.flatMap(([kind, each]) => ownersFor(actor, each).map((owner) => `${kind}@${owner}`))
    return bound.length === 0
      ? isFull
      : `(${isFull} OR providers.kind || '@' || providers.owner = ANY(${bind(bound)}::text[]))`
  }
