import { createHash } from 'node:crypto'
import { providersOf } from './entries.ts'
import { labelOf, type Row, type Rows, type Target } from './rows.ts'

/**
 * The files of a folder, with their rows. The paths follow from the rows of each file alone, so that an export after a change
 * differs only in the files of changed rows. A file refers only to files before it, in the order of their paths.
 */

export type Part = {
  /** The relative path, with slashes: `3-applications/team-a/grafana.yaml`. */
  readonly path: string
  /** The title of the document. */
  readonly title: string
  readonly owner: string | undefined
  /** The rows, in the order of the document. */
  readonly rows: readonly Row[]
}

const shared: Readonly<Partial<Record<string, string>>> = {
  flow: '1-flows',
  propertymapping: '2-property-mappings',
  certificatekeypair: '3-key-pairs',
  role: '4-roles',
  group: '5-groups',
} satisfies Partial<Record<Target, string>>

/** The most entries of a file. More take longer than an apply waits. */
const maxEntries = 2_000

/** @param ordered rows, each after those to which it refers */
export function layOut(rows: Rows, ordered: readonly Row[]): readonly Part[] {
  const homes = homesOf(rows, ordered)
  const groups = Map.groupBy(ordered, (row) => homes.get(row) ?? homeOf(row))
  return [...groups]
    .flatMap(([home, some]) => parted(home, some))
    .sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** Providers with another owner than their application: a write of these applications takes the providers over. */
export const withOtherOwner = (rows: Rows, some: readonly Row[]): readonly Row[] => [
  ...new Set(
    some
      .filter(({ model }) => model.target === 'application')
      .flatMap((row) => providersOf(rows, row).filter(({ owner }) => owner !== row.owner)),
  ),
]

/** A provider stands beside its application, unless it has another owner or several applications refer to it. */
function homesOf(rows: Rows, ordered: readonly Row[]): ReadonlyMap<Row, string> {
  const applications = ordered.filter(({ model }) => model.target === 'application')
  const users = Map.groupBy(
    applications.flatMap((row) => providersOf(rows, row).map((provider) => ({ row, provider }))),
    ({ provider }) => provider,
  )
  return new Map(
    [...users].flatMap(([provider, by]) => {
      const [only, another] = by
      const isIts = only !== undefined && another === undefined && only.row.owner === provider.owner
      return isIts ? [[provider, homeOf(only.row)] as const] : []
    }),
  )
}

/** The path without its ending. */
function homeOf(row: Row): string {
  const common = shared[row.model.target]
  if (common !== undefined) return `1-shared/${common}`
  const folder = row.model.target === 'application' ? '3-applications' : '2-providers'
  const name = row.model.target === 'application' ? row.values.slug : row.values.name
  return [folder, row.owner === null ? noOwner : safe(row.owner), safe(String(name))].join('/')
}

function parted(home: string, rows: readonly Row[]): Part[] {
  const count = Math.ceil(rows.length / maxEntries)
  const digits = String(count).length
  return Array.from({ length: count }, (_, index) => {
    const some = rows.slice(index * maxEntries, (index + 1) * maxEntries)
    const last = some.at(-1)
    const title = home.startsWith('1-') || last === undefined ? home.slice(home.lastIndexOf('-') + 1) : labelOf(last)
    const path = count === 1 ? home : `${home}-${String(index + 1).padStart(digits, '0')}`
    return { path: `${path}.yaml`, title: `export of ${title}`, owner: last?.owner ?? undefined, rows: some }
  })
}

const noOwner = 'no-owner'

/** Names that a system keeps for itself, that `apply` leaves out, or that mean something else here: such as a digest. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?$|^node_modules$|^no-owner$|-[\da-f]{8}$/

const longest = 60

/**
 * A name that every file system takes, and that no other text gets, in capitals or not. A digest of the text follows when a part
 * of it is lost.
 */
export function safe(text: string): string {
  const plain = text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z\d._-]+/g, '-')
    .slice(0, longest)
    .replace(/^[-._]+|[-._]+$/g, '')
  if (plain === text && !reserved.test(plain)) return plain
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 8)
  return `${plain === '' ? 'x' : plain}-${digest}`
}
