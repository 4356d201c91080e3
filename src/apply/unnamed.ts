import type { EngineReader } from '../db/engine-tx.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { maxLabelled } from '../plan/claims.ts'
import { mayKnow } from '../plan/effect.ts'
import type { Conditions } from '../plan/engine.ts'
import type { Finding } from './finding.ts'
import { unnamedBy } from './follow.ts'

/** An object of the owner that the document does not name. */
export type Unnamed = {
  readonly model: string
  readonly displayName: string
  /** As in changes: the identifiers. */
  readonly key: Readonly<Record<string, string>>
  readonly name: string
  readonly owner: string
}

/**
 * What the owner manages beside the document, as a plan with `reset` reports it: the document is to be all that there is. An
 * apply leaves it alone, and a document that prunes deletes it.
 *
 * @returns those that the submitter may know, as many as a document may prune at most; none of one that prunes; undefined when it
 *   was not asked for
 */
export async function readUnnamed(
  reader: EngineReader,
  registry: Registry,
  findings: readonly Finding[],
  actor: Actor,
  { mode, reset, prune, owner }: Conditions,
): Promise<readonly Unnamed[] | undefined> {
  if (mode !== 'plan' || !reset || owner === null) return undefined
  if (prune) return []
  const rows = await unnamedBy(reader, registry, findings, owner)
  return rows
    .filter((row) => mayKnow(actor, row.model, row.owner))
    .slice(0, maxLabelled)
    .map(({ model, name }) => {
      const [[identifier = 'name'] = []] = model.identifiers
      return { model: model.name, displayName: model.displayName, key: { [identifier]: name }, name, owner }
    })
}
