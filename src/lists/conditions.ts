import type { Values } from '../db/raw.ts'
import { likeLiterally } from './filters.ts'
import type { Listed, ListQuery, Owned, Visible } from './listed.ts'
import { type ListedModel, qualified } from './tables.ts'

type Asked = Pick<ListQuery, 'filters' | 'terms' | 'own' | 'values' | 'bound' | 'owners' | 'caller'>
type Bind = Values['bind']

/**
 * The conditions of a request, and those of the rows that this caller sees at all, in SQL: none for a list that nothing narrows.
 *
 * @param isWalked whether rows are read one by one in an order, because many match
 */
export function conditionsOf(
  { view: { model }, search, own, always, visible, owned }: Omit<Listed, 'count' | 'order'>,
  asked: Asked,
  bind: Bind,
  isWalked = false,
): string[] {
  return [
    ...(always === undefined ? [] : [qualified(model, always)]),
    ...(asked.own === undefined || own === undefined ? [] : [`${qualified(model, own.field)} = ${bind(asked.own)}`]),
    ...(asked.values === undefined || visible === undefined
      ? []
      : [visibleIn(model, visible, asked.values, asked.bound, bind)]),
    ...(asked.owners === undefined || owned === undefined ? [] : [ownedIn(owned, asked.owners, asked.caller, bind)]),
    ...asked.filters.map(({ filter: { on, condition, walked = condition }, value }) => {
      const sql = typeof on === 'string' ? qualified(model, on) : on.sql
      return `(${(isWalked ? walked : condition)(sql, value, bind)})`
    }),
    ...wordsIn(search.sql, asked.terms, bind),
  ]
}

const wordsIn = (sql: string, terms: readonly string[], bind: Bind): string[] =>
  terms.map((term) => {
    const pattern = `lower(${bind(`%${likeLiterally(term)}%`)})`
    return `(${sql.replaceAll('{pattern}', () => pattern)})`
  })

function visibleIn(
  model: ListedModel,
  { field, owner }: Visible,
  values: readonly string[],
  bound: readonly string[],
  bind: Bind,
): string {
  const value = qualified(model, field)
  const isFull = `${value} = ANY(${bind(values)}::text[])`
  if (bound.length === 0) return isFull
  return `(${isFull} OR ${value} || '@' || ${qualified(model, owner)} = ANY(${bind(bound)}::text[]))`
}

function ownedIn({ sql, or, and }: Owned, owners: readonly string[], caller: number | null, bind: Bind): string {
  const list = `${bind(owners)}::text[]`
  const isOwned = `${sql} = ANY(${list})`
  if (or === undefined) return isOwned
  const key = bind(caller)
  const seen = `(${isOwned} OR ${or.replaceAll('{caller}', key)})`
  return and === undefined ? seen : `(${seen} AND ${and.replaceAll('{owners}', list).replaceAll('{caller}', key)})`
}
