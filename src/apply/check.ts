import type { EngineReader } from '../db/engine-tx.ts'
import type { Actor } from '../permissions.ts'
import type { Plan } from '../plan/compile.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import { Loader } from '../plan/load.ts'
import type { Finding, Objection } from './finding.ts'
import { judge } from './judge.ts'
import { Refusal } from './refusal.ts'

/**
 * Judges a document before the API enqueues it, like the worker, but without writing. All objections of one kind are reported at
 * once. The worker judges again, because rows may change in between.
 *
 * @param signal ends it, before the next statement or the next entry
 * @returns the changes that the entries would make
 * @throws {Problem} `permission_denied`, `precondition_failed`, `invalid` or `conflict`
 */
export async function check(
  reader: EngineReader,
  engine: Engine,
  plan: Plan,
  actor: Actor,
  conditions: Conditions,
  signal?: AbortSignal,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const objections: Objection[] = plan.errors.any ? [{ is: 'invalid', errors: plan.errors }] : []
  const loader = new Loader(endedBy(reader, signal), engine.registry)
  for await (const finding of judge(loader, { engine, plan, actor, conditions, ...(signal && { signal }) })) {
    if (finding.cause === 'skipped') continue
    objections.push(...finding.objections)
    if (finding.cause === 'entry') findings.push(finding)
  }
  if (objections.length > 0) throw new Refusal(objections).problem
  return findings
}

/** A reader that sends no statement once the signal is given. */
const endedBy = (reader: EngineReader, signal: AbortSignal | undefined): EngineReader => ({
  query: async (row, statement) => {
    signal?.throwIfAborted()
    return reader.query(row, statement)
  },
  attempt: async (row, statement, limits) => {
    signal?.throwIfAborted()
    return reader.attempt(row, statement, limits)
  },
})
