import type { EngineReader } from '../db/engine-tx.ts'
import type { Actor } from '../permissions.ts'
import type { Plan } from '../plan/compile.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import type { Finding, Objection } from './finding.ts'
import { judge } from './judge.ts'
import { Refusal } from './refusal.ts'

/**
 * What the API does before it enqueues: the judgement of the worker, without writing. It reports all objections of one
 * kind at once. The worker judges again, because rows may change in between.
 *
 * @returns what the entries would do
 * @throws {Problem} `permission_denied`, `precondition_failed`, `invalid` or `conflict`
 */
export async function check(
  reader: EngineReader,
  engine: Engine,
  plan: Plan,
  actor: Actor,
  conditions: Conditions,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const objections: Objection[] = plan.errors.any ? [{ is: 'invalid', errors: plan.errors }] : []
  for await (const finding of judge(reader, { engine, plan, actor, conditions })) {
    if (finding.cause === 'skipped') continue
    objections.push(...finding.objections)
    if (finding.cause === 'given') continue
    if (finding.cause === 'entry') findings.push(finding)
  }
  if (objections.length > 0) throw new Refusal(objections).problem
  return findings
}
