import type { EngineReader } from '../db/engine-tx.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from '../plan/compile.ts'
import type { Conditions, Mode } from '../plan/engine.ts'
import {
  bereft,
  claimedBy,
  type Holder,
  holdersOf,
  maxNamed,
  type NamedRow,
  namedRows,
  type Orphan,
} from '../plan/holders.ts'
import type { Finding } from '../plan/inspect.ts'

/**
 * What follows from a document for rows that it does not name: a provider that no application has any more, an application
 * that lost its provider. They are reported in the logs, or deleted if the submitter asked for it
 * (docs/adr/0044-what-follows-from-a-document.md).
 */

/** The deletion of a row, by its name: it takes the lock that documents take which name the row. */
export const removal = ({ model, pk, name }: NamedRow): Step => {
  const [[identifier] = []] = model.identifiers
  const by: [string, unknown] = identifier === undefined ? ['pk', pk] : [identifier, name]
  return { id: undefined, model, state: 'absent', identifiers: new Map([by]), attrs: new Map(), path: [] }
}

/** A row in messages, as `rowName` has it. */
const nameOf = ({ model, name }: NamedRow): string => `${model.displayName} ${JSON.stringify(name)}`

/** A row, among those of all tables: `table key`. */
export const rowId = ({ table }: Model, key: string | number): string => `${table} ${key}`

/** The rows that the document names and that were there before, as `rowId` has them. */
export const rowsNamed = (findings: readonly Finding[]): ReadonlySet<string> =>
  new Set(
    findings.flatMap(({ step: { model }, row, isForeign }) =>
      row === undefined || isForeign ? [] : [rowId(model, row.pk)],
    ),
  )

/** Of the rows that nothing has for its own any more, those that the submitter wants deleted: none that a document names. */
export function replacedOf(
  orphans: readonly Orphan[],
  findings: readonly Finding[],
  { replaceProvider }: Conditions,
): NamedRow[] {
  const named = rowsNamed(findings)
  return orphans.flatMap(({ row, isReplaced }) =>
    replaceProvider && isReplaced && !named.has(rowId(row.model, row.pk)) ? [row] : [],
  )
}

/**
 * What the owner manages and the document neither names nor refers to, if it prunes: what has others for its own goes
 * first, such as an application before its provider.
 *
 * @param made the rows that the document has made by now, as `rowId` has them
 * @returns one more than may be pruned at once, when there are more
 */
export async function prunedBy(
  reader: EngineReader,
  registry: Registry,
  findings: readonly Finding[],
  { prune, owner }: Conditions,
  made: ReadonlySet<string> = new Set(),
): Promise<NamedRow[]> {
  if (!prune || owner === null) return []
  const kept = rowsNamed(findings).union(claimedBy(registry, findings)).union(made)
  const labelled = registry.models.filter(({ isLabelled }) => isLabelled === true)
  const claiming = labelled.filter(({ claims = [] }) => claims.length > 0)
  const tables = new Set([...claiming, ...labelled].map(({ table }) => table))
  const pruned: NamedRow[] = []
  for (const table of tables)
    for (const row of await namedRows(reader, registry, table, { owner, except: kept })) pruned.push(row)
  return pruned.slice(0, maxNamed + 1)
}

/** @returns why these rows are not deleted; null when their number was acknowledged, and for a plan, which shows it */
export function pruneConflict(pruned: readonly NamedRow[], { mode, allow: { deletes } }: Conditions): string | null {
  if (pruned.length > maxNamed) return `prune would delete more than ${maxNamed}: that is too much for one document`
  if (pruned.length === 0 || deletes === pruned.length || mode === 'plan') return null
  const names = pruned.slice(0, maxLines).map(nameOf)
  const more = pruned.length - names.length
  const listed = [...names, ...(more > 0 ? [`${more} more`] : [])].join(', ')
  const sent = deletes === null ? '' : `, and not ${deletes}`
  return `prune would delete ${pruned.length}${sent}: ${listed}. Gatewright-Allow: deletes=${pruned.length} applies it all the same`
}

/** @returns a line of the log for each row that was left without one that has it for its own, with the remedy */
export function orphanLines(orphans: readonly Orphan[], { mode, replaceProvider }: Conditions): string[] {
  const has = mode === 'plan' ? 'would have' : 'has'
  const lines = orphans.map(({ row, holder, isReplaced }) => {
    const remedy =
      isReplaced && !replaceProvider ? 'delete it, or send ?replace_provider=true next time' : 'delete it, or use it'
    return `${nameOf(row)} ${has} no ${holder} now: ${remedy}`
  })
  return limited(lines)
}

/** The rows that lose what they had for their own, by the deletions of a document. */
export class Losses {
  readonly #registry: Registry
  readonly #names = new Map<string, string>()
  readonly #reads: Promise<readonly (Holder & { readonly name: string | undefined })[]>[] = []

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** Takes down the name of a row that may be deleted. */
  expect({ step: { model }, action, row, label }: Finding): void {
    if (action === 'delete' && row !== undefined)
      this.#names.set(rowId(model, row.pk), `${model.displayName} ${JSON.stringify(label)}`)
  }

  /** Reads who has these rows, before the deletion takes them away. */
  readonly read = (reader: EngineReader, model: Model, keys: readonly (string | number)[]): void => {
    const named = holdersOf(reader, this.#registry, model.table, keys).then((holders) =>
      holders.map((holder) => ({ ...holder, name: this.#names.get(rowId(model, holder.held)) })),
    )
    // `lines` reports a failure. Until then it is handled.
    named.catch(() => {})
    this.#reads.push(named)
  }

  /** @returns a line of the log for each row that lost what it had for its own, and is there without another */
  async lines(reader: EngineReader, mode: Mode): Promise<string[]> {
    const [loses, has] = mode === 'plan' ? ['would lose', 'would have'] : ['lost', 'has']
    const lost = (await Promise.all(this.#reads)).flat()
    const left = await bereft(reader, this.#registry, lost)
    const lines = left.map(({ displayName, label, field, isLink, name }) => {
      const what = `${displayName} ${JSON.stringify(label)}`
      return isLink
        ? `${what} ${loses} ${name} from ${field}: send the field again with another, if it needs one`
        : `${what} ${has} no ${field} now, because ${name} is deleted: send it with another, or delete it`
    })
    return limited(lines)
  }
}

/** An answer lists at most this many of a kind. */
const maxLines = 20

function limited(lines: readonly string[]): string[] {
  const more = lines.length - maxLines
  return [...lines.slice(0, maxLines), ...(more > 0 ? [`${more} more are not listed`] : [])]
}
