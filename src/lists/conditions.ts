import { type Bind, likeLiterally } from './filters.ts'
import type { ListQuery, ListSpec, Owned, Scope, Visible } from './listed.ts'
import { type ListedModel, qualified } from './tables.ts'

type Narrowing = Scope & Pick<ListQuery, 'filters' | 'terms'>

/**
 * The conditions of a request, and those of the rows that this caller sees at all, in SQL: none for a list that nothing narrows.
 *
 * @param isWalked whether rows are read one by one in an order, because many match
 */
export function conditionsOf(
  { view: { model }, search, own, always, visible, owned }: ListSpec,
  asked: Narrowing,
  bind: Bind,
  isWalked = false,
): string[] {
  return [
    ...(always === undefined ? [] : [qualified(model, always)]),
    ...(asked.own === undefined || own === undefined ? [] : [`${qualified(model, own.field)} = ${bind(asked.own)}`]),
    ...(asked.values === undefined || visible === undefined ? [] : [visibleIn(model, visible, asked.values, bind)]),
    ...(asked.owners === undefined || owned === undefined ? [] : [ownedIn(owned, asked, bind)]),
    ...asked.filters.map(({ filter: { on, condition, walked = condition }, value }) => {
      const sql = typeof on === 'string' ? qualified(model, on) : on.sql
      return `(${(isWalked ? walked : condition)(sql, value, bind)})`
    }),
    ...asked.terms.map((term) => {
      const pattern = `lower(${bind(`%${likeLiterally(term)}%`)})`
      return `(${search.replaceAll('{pattern}', () => pattern)})`
    }),
  ]
}

type SeenValues = NonNullable<Scope['values']>

function visibleIn(model: ListedModel, { field, owner }: Visible, { full, bound }: SeenValues, bind: Bind): string {
  const value = qualified(model, field)
  const isFull = `${value} = ANY(${bind(full)}::text[])`
  if (bound.length === 0) return isFull
  return `(${isFull} OR ${value} || '@' || ${qualified(model, owner)} = ANY(${bind(bound)}::text[]))`
}

function ownedIn({ sql, or = 'false', and = 'true' }: Owned, { owners, caller }: Scope, bind: Bind): string {
  const list = `${bind(owners)}::text[]`
  const filled = (text: string) => text.replaceAll('{owners}', list).replaceAll('{caller}', () => bind(caller))
  return `((${sql} = ANY(${list}) OR ${filled(or)}) AND ${filled(and)})`
}
