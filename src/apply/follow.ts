import type { EngineReader } from '../db/engine-tx.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import {
  addClaimed,
  claimsOn,
  type LabelledRow,
  maxLabelled,
  type NamedRow,
  orphansOf,
  readLabels,
} from '../plan/claims.ts'
import type { Step } from '../plan/compile.ts'
import type { Conditions } from '../plan/engine.ts'
import { ownerFor, prunedOwners } from '../plan/owners.ts'
import { RowSet } from '../plan/row-set.ts'
import type { World } from '../plan/world.ts'
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
  reader: EngineReader,
  registry: Registry,
  findings: readonly Finding[],
  conditions: Conditions,
): Promise<Following[]> {
  if (!conditions.replaceProvider) return []
  const named = rowsNamed(findings)
  const orphans = await orphansOf(reader, registry, findings)
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
  reader: EngineReader,
  registry: Registry,
  world: World,
  findings: readonly Finding[],
  conditions: Conditions,
): Promise<Following[]> => unnamedBy(reader, registry, world, findings, prunedOwners(conditions))

/**
 * The rows that the owners manage and the document neither names nor refers to. Rows that claim others come first, such as an
 * application before its provider. A provider of an application that stays is kept.
 *
 * @returns one more than may be pruned at once, when there are more
 */
export async function unnamedBy(
  reader: EngineReader,
  registry: Registry,
  world: World,
  findings: readonly Finding[],
  owners: readonly string[],
): Promise<Following[]> {
  if (owners.length === 0) return []
  const except = addClaimed(rowsNamed(findings), registry, findings)
  const labelled = registry.models.filter(({ isLabelled }) => isLabelled === true)
  const claiming = labelled.filter(({ claims = [] }) => claims.length > 0)
  const tables = new Set([...claiming, ...labelled].map(({ table }) => table))
  const pruned: LabelledRow[] = []
  for (const table of tables)
    for (const row of await readLabels(reader, registry, table, { owners, except })) pruned.push(row)
  const first = pruned.slice(0, maxLabelled + 1)
  const deleted = new RowSet()
  for (const { model, pk } of first) deleted.add(model, pk)
  const kept = new RowSet()
  for (const table of tables)
    for (const { model, pk, claimed } of await claimsOn(reader, registry, table, deleted.of(table))) {
      const claimant = registry.byName(model)
      const isBefore = claimant === undefined || deleted.has(claimant, pk) || world.has(claimant.table, pk)
      if (!isBefore) kept.add({ table }, claimed)
    }
  return first.flatMap((row) => (kept.has(row.model, row.pk) ? [] : [{ ...row, under: row.owner }]))
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
