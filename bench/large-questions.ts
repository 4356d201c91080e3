import { describe, type Json, type Operation, type Parameter } from '../test/support/openapi.ts'

/**
 * What is asked of the lists: each order, search and filter that the API's description has, so that a new one is asked by
 * itself. Values are those of rows: the most frequent one, and one that few rows have.
 */

/** @property mostMs milliseconds of CPU of PostgreSQL that an answer may take */
export type ListQuestion = { readonly what: string; readonly path: string; readonly mostMs: number }

/** Reads a path of the API as JSON. @throws for another status than 200 */
export type Get = (path: string) => Promise<unknown>

const usualMs = 100
/** The limit for containment in attributes, and for a search that matches everything. */
const patientMs = 300

type Row = Readonly<Record<string, unknown>>
type Page = { readonly pagination: { readonly count: number; readonly total_pages: number }; readonly results: Row[] }

/** @property rows some of all parts of the list */
type List = {
  readonly name: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly rows: readonly Row[]
  readonly pages: number
}

type Samples = ReadonlyMap<string, List>

export async function listQuestions(get: Get): Promise<ListQuestion[]> {
  const { document, operations } = describe((await get('/api/v3/schema/')) as Parameters<typeof describe>[0])
  const lists = new Map<string, List>()
  for (const operation of operations.filter(isList)) {
    const list = await sample(get, operation)
    lists.set(list.name, list)
  }
  const schemaOf = ({ schema }: Parameter): Json => resolved(schema, document.components.schemas)
  const questions: ListQuestion[] = []
  for (const list of lists.values()) {
    const add = (what: string, query: string, mostMs = usualMs) =>
      questions.push({ what: `${list.name}: ${what}`, path: `${list.path}?${query}`, mostMs })
    for (const [what, query, mostMs] of await searchesOf(get, list)) add(what, query, mostMs)
    for (const parameter of list.parameters) {
      const { name } = parameter
      const schema = schemaOf(parameter)
      if (name === 'ordering') for (const [what, query] of ordersOf(list, choicesOf(schema))) add(what, query)
      if (!paging.has(name) && !waiting.has(name))
        for (const [what, value] of valuesOf(list, name, schema, lists)) {
          const query = `${name}=${encodeURIComponent(value)}`
          add(`${name}, ${what}`, query, name === 'attributes' ? patientMs : usualMs)
          const page = isChoice(schema) ? await middleOf(get, `${list.path}?${query}`) : 1
          if (page > 1) add(`${name}, ${what}, middle page`, `${query}&page=${page}`)
        }
    }
  }
  return questions
}

const paging = new Set(['page', 'page_size', 'ordering', 'search'])

/** They choose no rows. */
export const waiting = new Set(['since', 'wait'])

const isList = ({ method, path, parameters }: Operation): boolean =>
  method === 'GET' && !path.includes('{') && [...paging].every((each) => parameters.some(({ name }) => name === each))

const resolved = (schema: Json, schemas: Readonly<Record<string, Json>>): Json => {
  const { $ref, items } = schema
  if (typeof $ref === 'string') return resolved(schemas[$ref.split('/').at(-1) ?? ''] ?? {}, schemas)
  return items === undefined ? schema : { ...schema, items: resolved(Object(items), schemas) }
}

const choicesOf = ({ enum: choices, items }: Json): string[] =>
  Array.isArray(choices) ? choices.map(String) : items === undefined ? [] : choicesOf(Object(items))

/** Where in the list rows are taken from. */
const places = [0, 0.25, 0.5, 0.75, 1]

async function sample(get: Get, { path, parameters: all }: Operation): Promise<List> {
  const parameters = all.filter((each) => each.in === 'query')
  // The members of a group may be many, and their names are those of the list of users.
  const query = parameters.some(({ name }) => name === 'include_users') ? '&include_users=false' : ''
  const read = async (page: number) => (await get(`${path}?page=${page}${query}`)) as Page
  const { pagination, results } = await read(1)
  const pages = pagination.total_pages
  const numbers = new Set(places.map((place) => Math.round(place * pages)).filter((number) => number > 1))
  const rows: Row[] = [...results]
  // A page that takes too long is among the questions, and fails there.
  for (const number of numbers) rows.push(...(await read(number).catch(() => ({ results: [] }))).results)
  return { name: path.replace(/^\/api\/v\d+\/|\/$/g, ''), path, parameters, rows, pages }
}

const ordersOf = ({ pages }: List, orders: readonly string[]): [what: string, query: string][] => [
  ['last page', `page=${pages}`],
  ...orders.flatMap((order): [string, string][] => [
    [`by ${order}`, `ordering=${order}`],
    ...(order.startsWith('-') ? [] : [[`by ${order}, middle page`, middle(order, pages)] as [string, string]]),
  ]),
]

/** The page in the middle; 1 where the list is not counted in time. */
const middleOf = (get: Get, path: string): Promise<number> =>
  (get(`${path}&page_size=1`) as Promise<Page>).then(
    ({ pagination }) => Math.ceil(pagination.count / 200),
    () => 1,
  )

const isChoice = (schema: Json): boolean => schema.type === 'boolean' || choicesOf(schema).length > 0

const middle = (order: string, pages: number): string => `ordering=${order}&page=${Math.ceil(pages / 2)}`

type Value = readonly [what: string, value: string]

/** Where the values of a filter stand that is not called as a field of the rows. */
const sources: Readonly<Record<string, (rows: readonly Row[], lists: Samples) => unknown[]>> = {
  attributes: (rows) => rows.flatMap(({ attributes }) => Object.entries(Object(attributes)).map(asObject)),
  groups_by_pk: (rows) => rows.flatMap(({ groups }) => groups),
  groups_by_name: (rows) => rows.flatMap(({ groups_obj }) => groups_obj).map((group) => Object(group).name),
  members_by_pk: (_, lists) => lists.get('core/users')?.rows.map(({ pk }) => pk) ?? [],
  members_by_username: (_, lists) => lists.get('core/users')?.rows.map(({ username }) => username) ?? [],
  object: (_, lists) => lists.get('core/applications')?.rows.map(({ slug }) => `application:${slug}`) ?? [],
  path_startswith: (rows) => rows.map(({ path }) => String(path).slice(0, -1)),
}

const asObject = ([name, value]: [string, unknown]): string => JSON.stringify({ [name]: value })

function valuesOf({ rows }: List, name: string, schema: Json, lists: Samples): Value[] {
  const choices = choicesOf(schema)
  if (choices.length > 0) return choices.map((choice) => [choice, choice])
  if (schema.type === 'boolean') return ['true', 'false'].map((choice) => [choice, choice])
  const found = sources[name]?.(rows, lists) ?? rows.map((row) => fieldOf(row, name))
  const values = found
    .map(keyOf)
    .flatMap((value) => (value === undefined || value === null || value === '' ? [] : [String(value)]))
  if (values.length === 0) return [['which no row has', unknownOf(schema)]]
  if (/_(after|before)$/.test(name)) return timesOf(values)
  const counts = Map.groupBy(values, (value) => value)
  const [most, ...others] = [...counts.keys()].sort(
    (a, b) => (counts.get(b)?.length ?? 0) - (counts.get(a)?.length ?? 0),
  )
  const few = others.at(-1)
  return [
    ...(most === undefined ? [] : [['most', most] as const]),
    ...(few === undefined ? [] : [['few', few] as const]),
  ]
}

/** `created_after` is about `created_at`, and about `at` where there is no such field. */
function fieldOf(row: Row, name: string): unknown {
  const base = name.replace(/_(after|before)$/, '')
  const field = [name, base, `${base}_at`, 'at'].find((each) => row[each] !== undefined)
  return field === undefined ? undefined : row[field]
}

/** The key of an object, or the value itself. */
const keyOf = (value: unknown): unknown => (typeof value === 'object' ? Object(value).pk : value)

const timesOf = (values: readonly string[]): Value[] => {
  const sorted = values.toSorted()
  return [
    ['the first time', sorted[0] ?? ''],
    ['a middle time', sorted[Math.floor(sorted.length / 2)] ?? ''],
    ['the last time', sorted.at(-1) ?? ''],
  ]
}

function unknownOf(schema: Json): string {
  const { type, format, items } = schema
  if (items !== undefined) return unknownOf(Object(items))
  if (type === 'integer') return '2147483647'
  if (format === 'uuid') return '00000000-0000-4000-8000-000000000000'
  return format === 'date-time' ? new Date().toISOString() : 'no-such-value'
}

/** Fields that lists search. */
const searched = ['username', 'identifier', 'slug', 'title', 'name', 'user']

type Search = readonly [what: string, query: string, mostMs: number]

async function searchesOf(get: Get, { path, rows }: List): Promise<Search[]> {
  const texts = rows.flatMap((row) => {
    const value = searched.map((field) => row[field]).find((each) => each !== undefined && each !== null)
    return value === undefined ? [] : [String(typeof value === 'object' ? Object(value).username : value)]
  })
  const words = Map.groupBy(
    texts.flatMap((text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u)).filter((word) => word.length >= 2),
    (word) => word,
  )
  const frequent = [...words.keys()].sort((a, b) => (words.get(b)?.length ?? 0) - (words.get(a)?.length ?? 0))
  const counts: [term: string, count: number][] = []
  for (const term of [...frequent.slice(0, 4), 'e']) {
    const asked = get(`${path}?page_size=1&search=${encodeURIComponent(term)}`) as Promise<Page>
    // What is not counted in time is much.
    counts.push([term, await asked.then(({ pagination }) => pagination.count).catch(() => Number.POSITIVE_INFINITY)])
  }
  const [everything, ...others] = counts.sort(([, one], [, other]) => other - one)
  const one = texts[Math.floor(texts.length / 2)]
  const found: [what: string, term: string | undefined, mostMs: number][] = [
    ['what matches most', everything?.[0], patientMs],
    ['a frequent word', others.find(([term]) => term.length > 2)?.[0], usualMs],
    ['one letter', 'q', patientMs],
    ['one row', one, usualMs],
    ['nothing', 'no-such-words', usualMs],
  ]
  return found.flatMap(([what, term, mostMs]): Search[] =>
    term === undefined ? [] : [[`search of ${what}`, `search=${encodeURIComponent(term)}`, mostMs]],
  )
}
