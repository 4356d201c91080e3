import type { Queryable } from '../db/client.ts'
import { Faults, Problem } from '../errors.ts'
import { own } from '../json-object.ts'
import type { Actor } from '../permissions.ts'
import { lookAhead } from './ahead.ts'
import type { Conditions } from './apply.ts'
import type { Plan } from './compile.ts'
import { forbidden } from './escalation.ts'
import { type Engine, type Finding, inspect, verbOf } from './inspect.ts'
import { type Keys, pending } from './resolve.ts'

/**
 * What the API asks before it queues: the same looks that the worker takes before it refuses, without writing. Whatever
 * the submitter can mend is told here, all of it at once; the worker finds out what has happened in between.
 *
 * @throws {Problem} `permission_denied`, `invalid` or `precondition_failed`
 */
export async function check(
  q: Queryable,
  engine: Engine,
  plan: Plan,
  actor: Actor,
  conditions: Conditions,
): Promise<readonly Finding[]> {
  const keys: Keys = new Map()
  const findings: Finding[] = []
  const looks = await lookAhead(q, engine.registry, plan.steps, { draw: false, trusting: false })
  for (const step of plan.steps) {
    const finding = await inspect(q, engine, step, keys, looks.get(step))
    findings.push(finding)
    const own = finding.isForeign ? undefined : finding.row
    if (step.id !== undefined) keys.set(step.id, { key: own?.pk ?? pending, isNew: own === undefined })
  }
  for (const finding of findings) refuseActor(finding, await forbidden(q, engine, actor, finding))
  const faults = new Faults().include([plan.faults, ...findings.map((finding) => finding.faults)])
  for (const finding of findings) checkExpectedKey(finding, conditions, faults)
  // A taken name is the answer to a well-formed document, not one more fault of a broken one.
  if (!plan.faults.any) refuseExisting(findings, conditions)
  faults.throwIfAny()
  return findings
}

export function refuseActor(finding: Finding, why: string | null): void {
  if (why === null) return
  const what = `${finding.step.model.noun} ${JSON.stringify(finding.label)}`
  throw new Problem('permission_denied', `You may not ${verbOf(finding)} ${what}: ${why}.`)
}

function refuseExisting(findings: readonly Finding[], { createOnly }: Conditions): void {
  const there = createOnly ? findings.find(({ row }) => row !== undefined) : undefined
  if (there === undefined) return
  const { step, label } = there
  throw new Problem(
    'precondition_failed',
    `${step.model.noun} ${JSON.stringify(label)} is there already, and If-None-Match: * allows only to create.`,
  )
}

function checkExpectedKey({ step, row, label }: Finding, { expectedKeys }: Conditions, faults: Faults): void {
  const expected = own(expectedKeys, step.id)
  if (expected === undefined || expected === row?.pk) return
  const truth = row === undefined ? 'is not there yet' : `has the key ${row.pk}`
  faults.add(
    ['app', 'provider'],
    `The submission's ${step.model.noun} ${JSON.stringify(label)} ${truth}: leave this member out, or send its key.`,
  )
}
