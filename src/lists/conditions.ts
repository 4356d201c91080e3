import { likeLiterally } from './filters.ts'
import type { Listed, ListQuery, Owned, Values, Visible } from './listed.ts'
import { type ListedModel, qualified, tableOf } from './tables.ts'

/** Which rows are asked for, and which of them this caller sees at all, in SQL: none for a list that nothing narrows. */
export function conditionsOf(
  { view: { model }, search, own, always, visible, owned }: Omit<Listed, 'count' | 'order'>,
  asked: Pick<ListQuery, 'filters' | 'terms' | 'own' | 'values' | 'bound' | 'owners' | 'caller'>,
  { bind }: Pick<Values, 'bind'>,
): string[] {
  return [
    ...(always === undefined ? [] : [qualified(model, always)]),
    ...(asked.own === undefined || own === undefined ? [] : [`${qualified(model, own.field)} = ${bind(asked.own)}`]),
    ...(asked.values === undefined || visible === undefined
      ? []
      : [visibleIn(model, visible, asked.values, asked.bound, bind)]),
    ...(asked.owners === undefined || owned === undefined ? [] : [ownedIn(owned, asked.owners, asked.caller, bind)]),
    ...asked.filters.map(({ filter: { on, condition }, value }) => {
      const sql = typeof on === 'string' ? qualified(model, on) : on.sql
      return `(${condition(sql, value, bind)})`
    }),
    ...wordsIn(search.sql, asked.terms, bind),
  ]
}

const wordsIn = (sql: string, terms: readonly string[], bind: Bind): string[] =>
  terms.map((term) => {
    const pattern = `lower(${bind(`%${likeLiterally(term)}%`)})`
    return `(${sql.replaceAll('{pattern}', () => pattern)})`
  })

/**
 * The rows of a list that something narrows, in no order: what follows FROM. Texts that stand once are searched there, and
 * lead to their rows. PostgreSQL would read all rows in place of those of a thousand texts, unless another condition is known
 * to leave few: the subquery prevents that.
 */
export function matchingRows(list: Listed, asked: ListQuery, values: Values): string {
  const { name } = tableOf(list.view.model)
  const { once } = list.search
  if (once === undefined || asked.terms.length === 0)
    return `${name} WHERE ${conditionsOf(list, asked, values).join(' AND ')}`
  const others = conditionsOf(list, { ...asked, terms: [] }, values)
  const { table, column, sql } = once
  const texts = `SELECT DISTINCT ${column} FROM ${table} WHERE ${wordsIn(sql, asked.terms, values.bind).join(' AND ')}`
  return others.length > 0
    ? `${name} WHERE ${others.join(' AND ')} AND ${name}.${column} IN (${texts})`
    : `(${texts}) ${table} CROSS JOIN LATERAL (
        SELECT * FROM ${name} WHERE ${name}.${column} = ${table}.${column} OFFSET 0) ${name}`
}

type Bind = Values['bind']

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
