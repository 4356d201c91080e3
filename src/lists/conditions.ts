import type { Values } from '../db/raw.ts'
import { likeLiterally } from './filters.ts'
import type { Listed, ListQuery, Owned, Visible } from './listed.ts'
import { type ListedModel, qualified, tableOf } from './tables.ts'

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

/**
 * The rows that match, in no order: what follows FROM. Texts that stand in another table are searched there, and lead to their
 * rows. PostgreSQL would read all rows in place of those of a thousand texts: the subquery prevents that.
 */
export function matchingRows(list: Listed, asked: Asked, bind: Bind): string {
  const { name } = tableOf(list.view.model)
  const { elsewhere } = list.search
  if (elsewhere === undefined || asked.terms.length === 0)
    return `${name} WHERE ${conditionsOf(list, asked, bind).join(' AND ')}`
  const words = wordsIn(elsewhere.sql, asked.terms, bind).join(' AND ')
  const others = conditionsOf(list, { ...asked, terms: [] }, bind)
  const texts = elsewhere.keys.replace('{words}', () => words)
  return `(${texts}) texts CROSS JOIN LATERAL (
    SELECT * FROM ${name} WHERE ${[`${name}.${elsewhere.column} = texts.key`, ...others].join(' AND ')} OFFSET 0) ${name}`
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
