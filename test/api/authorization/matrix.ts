import { readFile } from 'node:fs/promises'

/** The reviewed table, read. */

/** One answer that is expected of one kind of actor, or of each of them in the order of what they lack. */
type Cells = Readonly<Record<string, string>>

/** What is tried: one member of one operation with one value, on one object. */
export type Row = {
  readonly title: string
  /** `PATCH /api/v3/core/groups/:group_uuid/` */
  readonly operation: string
  readonly whose: string
  readonly member: string
  readonly value: string
  /** Permissions. */
  readonly needs: readonly string[]
  readonly cells: Cells
}

export type Matrix = {
  /** The actors of each column, by name. */
  readonly actors: ReadonlyMap<string, readonly string[]>
  readonly rows: readonly Row[]
}

const sheets = ['matrix.md', 'matrix-applies.md', 'matrix-dashboard.md', 'matrix-objects.md']
const facts = ['whose', 'member', 'value', 'needs']

/** Rows of owners, look-ups and guesses: operations of the other sheets, with more that matters. */
const ownerSheet = 'matrix-owners.md'

const read = async (sheet: string) => (await readFile(new URL(sheet, import.meta.url), 'utf8')).split(/^## /m)
const legendIn = (text: string) =>
  new Map(tableIn(text).map(({ column = '', actors: names = '' }) => [column, names.split(', ')]))

export async function readMatrix(): Promise<Matrix> {
  const texts = await Promise.all(sheets.map(read))
  const [legend = '', ...sections] = texts.flatMap((text, sheet) => text.slice(sheet === 0 ? 0 : 1))
  const actors = legendIn(legend)
  return { actors, rows: sections.flatMap((section) => rowsIn(section, [...actors.keys()])) }
}

/** The sheet of owners: its sections have all columns, or those of the other sheets. `actors` are its own. */
export async function readOwnerMatrix(): Promise<Matrix> {
  const { actors: known } = await readMatrix()
  const [legend = '', ...sections] = await read(ownerSheet)
  const actors = legendIn(legend)
  const isOfOwners = (section: string) => [...actors.keys()].every((column) => section.includes(`| ${column} `))
  return {
    actors,
    rows: sections.flatMap((section) =>
      rowsIn(section, [...known.keys(), ...(isOfOwners(section) ? actors.keys() : [])]),
    ),
  }
}

/** The rows that try these operations, each with its title. @throws when there are none */
export async function rowsOf(...prefixes: string[]): Promise<(readonly [title: string, row: Row])[]> {
  return titled((await readMatrix()).rows, prefixes)
}

/** The same as `rowsOf`, for the sheet of owners. @param isTried picks some of them */
export async function ownerRowsOf(isTried: (row: Row) => boolean, ...prefixes: string[]) {
  return titled((await readOwnerMatrix()).rows.filter(isTried), prefixes)
}

function titled(rows: readonly Row[], prefixes: readonly string[]): (readonly [title: string, row: Row])[] {
  const found = rows.filter(({ operation }) => prefixes.some((prefix) => operation.startsWith(prefix)))
  if (found.length === 0) throw new Error(`the table has no row of ${prefixes}`)
  return found.map((row) => [row.title, row])
}

function rowsIn(section: string, columns: readonly string[]): Row[] {
  const operations = [...section.matchAll(/^- (\S+ \S+)$/gm)].map(([, operation = '']) => operation)
  return operations.flatMap((operation) =>
    tableIn(section, [...facts, ...columns]).flatMap((line) => {
      const { whose = '', member = '', value = '', needs = '', ...cells } = line
      const tried = product(whose.split('; '), member.split(' '), value.split('; '))
      return tried.map(([who = '', name = '', sent = '']) => ({
        title: [operation, who, name, sent].filter((part) => part !== '-').join(' | '),
        ...{ operation, whose: who, member: name, value: sent, cells },
        needs: needs === '-' ? [] : needs.split(' '),
      }))
    }),
  )
}

const product = (...lists: string[][]): string[][] =>
  lists.reduce<string[][]>((all, list) => all.flatMap((one) => list.map((each) => [...one, each])), [[]])

/** The lines of the one table in a text, by column. @throws when it has other columns than these */
function tableIn(text: string, columns?: readonly string[]): Record<string, string>[] {
  const [head = [], , ...lines] = text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
  if (columns !== undefined && head.join() !== columns.join())
    throw new Error(`${text.split('\n', 1)}: the columns are ${head}, not ${columns}`)
  return lines.map((line) => {
    if (line.length !== head.length || line.includes('')) throw new Error(`a cell is missing: ${line.join(' | ')}`)
    return Object.fromEntries(head.map((column, index) => [column, line[index] ?? '']))
  })
}
