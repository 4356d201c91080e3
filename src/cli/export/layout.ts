import { sha256 } from '../../ids.ts'
import { type Chosen, type ExportedDocument, providersOf } from './entries.ts'
import { labelOf, type Row, type Target } from './rows.ts'

/**
 * The files of a folder, with their rows. The paths follow from the rows of each file alone, so that an export after a change
 * differs only in the files of changed rows. A file refers only to files before it, in the order of their paths.
 */

const shared: Readonly<Partial<Record<string, string>>> = {
  flow: '1-flows',
  propertymapping: '2-property-mappings',
  certificatekeypair: '3-key-pairs',
  role: '4-roles',
  group: '5-groups',
  trustedissuer: '6-trusted-issuers',
} satisfies Partial<Record<Target, string>>

/** The most entries of a file. More take longer than an apply waits. */
const maxEntries = 2_000

export function layOut(chosen: Chosen): readonly ExportedDocument[] {
  const homes = homesOf(chosen)
  const groups = Map.groupBy(chosen.rows, (row) => homes.get(row) ?? homeOf(row))
  return [...groups]
    .flatMap(([home, some]) => parted(home, some))
    .sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** Providers with another owner than their application: a write of these applications takes the providers over. */
export const withOtherOwner = (chosen: Chosen): readonly Row[] => {
  const others = usesOf(chosen).filter(({ application, provider }) => provider.owner !== application.owner)
  return [...new Set(others.map(({ provider }) => provider))]
}

const usesOf = ({ all, rows }: Chosen) =>
  rows
    .filter(({ model }) => model.target === 'application')
    .flatMap((application) => providersOf(all, application).map((provider) => ({ application, provider })))

/** A provider stands beside its application, unless it has another owner or several applications refer to it. */
function homesOf(chosen: Chosen): ReadonlyMap<Row, string> {
  const homes = new Map<Row, string>()
  for (const [provider, uses] of Map.groupBy(usesOf(chosen), (use) => use.provider)) {
    const [only, another] = uses.map(({ application }) => application)
    if (another === undefined && only?.owner === provider.owner) homes.set(provider, homeOf(only))
  }
  return homes
}

/** The path without its ending. */
function homeOf(row: Row): string {
  const common = shared[row.model.target]
  if (common !== undefined) return `1-shared/${common}`
  const folder = row.model.target === 'application' ? '3-applications' : '2-providers'
  const name = row.model.target === 'application' ? row.values.slug : row.values.name
  return [folder, row.owner === null ? noOwner : safe(row.owner), safe(String(name))].join('/')
}

function parted(home: string, rows: readonly Row[]): ExportedDocument[] {
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
  const digest = sha256(text).toString('hex').slice(0, 8)
  return `${plain === '' ? 'x' : plain}-${digest}`
}
