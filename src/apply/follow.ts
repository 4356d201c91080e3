import type { Actor } from '../permissions.ts'
import { type LabelledRow, type NamedRow, orphansOf, placeOf, readLabelled } from '../plan/claims.ts'
import { mayKnow } from '../plan/effect.ts'
import { type Conditions, ownerFor, prunedOwners } from '../plan/engine.ts'
import type { Loader } from '../plan/load.ts'
import type { Look } from '../plan/look.ts'
import { claimLooks, maxLabelled } from '../plan/looks.ts'
import type { Step } from '../plan/step.ts'
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

/** The rows that the document leaves unclaimed and that the submitter wants deleted: none that the document names. */
export async function replacedBy(
  loader: Loader,
  findings: readonly Finding[],
  conditions: Conditions,
): Promise<Following[]> {
  if (!conditions.replaceProvider) return []
  const orphans = await orphansOf(loader, findings, true)
  return orphans.flatMap(({ row, isReplaced, by }) => {
    if (!isReplaced || loader.world.has(row.model.table, row.pk)) return []
    // A row that goes with an application is deleted under the label of the application, or its own where that is one of several.
    const owners = by.map((step) => ownerFor(step, conditions))
    const [first = conditions.owner] = owners
    return [{ ...row, under: owners.includes(row.owner) ? row.owner : first }]
  })
}

/**
 * The rows that the owners manage and the document neither names nor refers to. Rows that claim others come first, such as an
 * application before its provider. A provider of an application that stays is kept.
 *
 * @returns one more than may be pruned at once, when there are more
 */
export async function unnamedBy(loader: Loader, owners: readonly string[]): Promise<Following[]> {
  if (owners.length === 0) return []
  const labelled = loader.world.registry.models.filter(({ isLabelled }) => isLabelled === true)
  const claiming = labelled.filter(({ claims = [] }) => claims.length > 0)
  const byTable = new Map([...claiming, ...labelled].map((model) => [model.table, model]))
  const unnamed: LabelledRow[] = []
  for (const model of byTable.values()) unnamed.push(...(await readLabelled(loader, model, owners)))
  const first = unnamed.slice(0, maxLabelled + 1)
  const left = new Set(first.map(placeOf))
  const claims = new Map(first.map((row) => [row, claimLooks(loader.world, row.model.table, row.pk)]))
  await loader.load({ looks: [...claims.values()].flat(), isAgain: true })
  const isKept = (look: Look) => loader.world.find(look).some(({ pk }) => !left.has(placeOf({ model: look.model, pk })))
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

/** An object of an owner of the document that the document does not name. */
export type Unnamed = {
  readonly model: string
  readonly displayName: string
  /** The identifiers, like those in changes. */
  readonly key: Readonly<Record<string, string>>
  readonly name: string
  readonly owner: string
}

/**
 * The objects that the owners of the entries manage beside the document, for a plan with `reset`, whose document shall name all.
 * An apply does not change them, and a document that prunes deletes them.
 *
 * @returns those that the submitter may know, as many as a document may prune at most; none for a document that prunes; undefined
 *   when they were not requested
 */
export async function readUnnamed(
  loader: Loader,
  findings: readonly Finding[],
  actor: Actor,
  conditions: Conditions,
): Promise<readonly Unnamed[] | undefined> {
  if (conditions.mode !== 'plan' || !conditions.reset) return undefined
  const named = findings.flatMap(({ cause, step }) => (cause === 'entry' ? ownerFor(step, conditions) : null))
  const owners = new Set([...named, conditions.owner].filter((owner) => owner !== null))
  if (owners.size === 0) return undefined
  const pruned = prunedOwners(conditions)
  const left = [...owners].filter((owner) => !pruned.includes(owner))
  const rows = await unnamedBy(loader, left)
  return rows
    .filter((row) => mayKnow(actor, row.model, row.owner))
    .slice(0, maxLabelled)
    .map(({ model, name, owner }) => {
      const [[identifier = 'name'] = []] = model.identifiers
      const key = { [identifier]: name }
      return { model: model.name, displayName: model.displayName, key, name, owner: String(owner) }
    })
}
