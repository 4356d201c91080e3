import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import {
  addClaimed,
  claimLooks,
  type LabelledRow,
  maxLabelled,
  type NamedRow,
  orphansOf,
  readLabels,
} from '../plan/claims.ts'
import type { Step } from '../plan/compile.ts'
import type { Conditions } from '../plan/engine.ts'
import type { Loader } from '../plan/load.ts'
import type { Look } from '../plan/look.ts'
import { ownerFor, prunedOwners } from '../plan/owners.ts'
import { RowSet } from '../plan/row-set.ts'
import type { Finding, Objection } from './finding.ts'

/**
 * The rows that a document affects and does not name: a provider that no application has any more, an application that lost its
 * provider. They are reported in the logs, or deleted at the request of the submitter
 * (docs/adr/0044-what-follows-from-a-document.md).
 */

/**
 * The deletion of a row, by its name: it takes the same lock as documents that name the row.
 *
 * @property under the label under which it is deleted; undefined: that of the request
 */
export const removal = ({ model, pk, name, under }: NamedRow & Partial<Following>): Step => {
  const [[identifier] = []] = model.identifiers
  const by: [string, unknown] = identifier === undefined ? ['pk', pk] : [identifier, name]
  const owner = under === undefined ? {} : { owner: under }
  return { id: undefined, model, state: 'absent', identifiers: new Map([by]), attrs: new Map(), path: [], ...owner }
}

/** A row that is deleted because of the document. */
export type Following = LabelledRow & { readonly under: string | null }

function rowsNamed(findings: readonly Finding[]): RowSet {
  const rows = new RowSet()
  for (const {
    cause,
    step: { model },
    row,
    isForeign,
    identity,
  } of findings)
    if (cause !== 'taken' && !isForeign) rows.add(model, row?.pk ?? identity?.pk)
  return rows
}

/** The rows that the document leaves unclaimed and that the submitter wants deleted: none that the document names. */
export async function replacedBy(
  loader: Loader,
  registry: Registry,
  findings: readonly Finding[],
  conditions: Conditions,
): Promise<Following[]> {
  if (!conditions.replaceProvider) return []
  const named = rowsNamed(findings)
  const orphans = await orphansOf(loader, registry, findings, true)
  return orphans.flatMap(({ row, isReplaced, by }) => {
    if (!isReplaced || named.has(row.model, row.pk)) return []
    // A row that goes with an application is deleted under the label of the application, or its own where that is one of several.
    const owners = by.map((step) => ownerFor(step, conditions))
    const [first = conditions.owner] = owners
    return [{ ...row, under: owners.includes(row.owner) ? row.owner : first }]
  })
}

/** The rows that the document deletes because no entry names them. @returns those of `unnamedBy` */
export const prunedBy = (
  loader: Loader,
  registry: Registry,
  findings: readonly Finding[],
  conditions: Conditions,
): Promise<Following[]> => unnamedBy(loader, registry, findings, prunedOwners(conditions))

/**
 * The rows that the owners manage and the document neither names nor refers to. Rows that claim others come first, such as an
 * application before its provider. A provider of an application that stays is kept.
 *
 * @returns one more than may be pruned at once, when there are more
 */
export async function unnamedBy(
  loader: Loader,
  registry: Registry,
  findings: readonly Finding[],
  owners: readonly string[],
): Promise<Following[]> {
  if (owners.length === 0) return []
  const except = addClaimed(rowsNamed(findings), registry, findings)
  const labelled = registry.models.filter(({ isLabelled }) => isLabelled === true)
  const claiming = labelled.filter(({ claims = [] }) => claims.length > 0)
  const tables = new Set([...claiming, ...labelled].map(({ table }) => table))
  const unnamed: LabelledRow[] = []
  for (const table of tables)
    for (const row of await readLabels(loader.reader, registry, table, owners, except)) unnamed.push(row)
  const first = unnamed.slice(0, maxLabelled + 1)
  const left = new RowSet()
  for (const { model, pk } of first) left.add(model, pk)
  const claims = new Map(first.map((row) => [row, claimLooks(registry, row.model.table, row.pk)]))
  await loader.load({ looks: [...claims.values()].flat().map(({ look }) => look), isAgain: true })
  const isKept = ({ model, look }: { model: Model; look: Look }) =>
    loader.world.find(look).some(({ pk }) => !left.has(model, pk))
  return first.flatMap((row) => (claims.get(row)?.some(isKept) ? [] : [{ ...row, under: row.owner }]))
}

/**
 * @returns none when the number of these rows was acknowledged, for a plan, which shows it, and for the apply of a reviewed
 *   plan, which is refused when these are not the rows of the plan
 */
export function pruneObjections(
  rows: readonly LabelledRow[],
  { mode, reviewed, allow: { deletes } }: Conditions,
  actor: Actor,
): readonly Objection[] {
  const isPlanned =
    rows.length <= maxLabelled &&
    (deletes === rows.length || mode === 'plan' || (reviewed !== null && deletes === null))
  return isPlanned ? [] : [{ is: 'prunes', rows, acknowledged: deletes, actor }]
}
