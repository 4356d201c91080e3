import { type LabelledRow, orphansOf } from '../plan/claims.ts'
import { type Conditions, ownerFor } from '../plan/engine.ts'
import type { Loader } from '../plan/load.ts'
import type { Step } from '../plan/step.ts'
import type { Finding } from './finding.ts'

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
export const removal = ({ model, identifiers, under }: LabelledRow & Partial<Following>): Step => {
  const owner = under === undefined ? {} : { owner: under }
  return { id: undefined, model, state: 'absent', identifiers, attrs: new Map(), path: [], ...owner }
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
