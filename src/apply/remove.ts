import { z } from 'zod'
import { retrying } from '../db/backoff.ts'
import { type Db, patient, type Tx, transaction } from '../db/client.ts'
import { type EngineTx, reader, withEngine } from '../db/engine-tx.ts'
import { isCollision } from '../db/errors.ts'
import { Problem } from '../errors.ts'
import { sentence } from '../messages.ts'
import type { Actor } from '../permissions.ts'
import { compile, type Plan } from '../plan/compile.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import { columnOf, quoted } from '../plan/statements.ts'
import { apply } from './apply.ts'
import { audit } from './audit.ts'
import { check } from './check.ts'
import { lock } from './execute.ts'
import { Refusal } from './refusal.ts'
import { asProblem, busy, tries } from './write.ts'

/** A row that a request deletes, by the field that names it. */
export type Removal = {
  /** The model's name. */
  readonly model: string
  readonly by: Readonly<Record<string, string>>
  readonly conditions: Conditions
  readonly requestId: string
  /** Throws when the row, which is locked, is not as the caller has seen it. */
  readonly precondition?: (tx: Tx) => Promise<void>
}

/**
 * Deletes one row as a document with the entry `absent` does, in a transaction of its own: the same permissions, owners
 * and audit row, and what follows from it.
 *
 * @throws {Problem} `not_found`, `permission_denied`, `conflict` for a row of another owner or one that others refer to,
 *   `precondition_failed`, `unavailable`
 */
export async function remove(db: Db, engine: Engine, actor: Actor, removal: Removal): Promise<void> {
  const { model, by, conditions } = removal
  const entry = { model, state: 'absent', identifiers: by, attrs: {} } as const
  const plan = compile({ version: 1, metadata: { name: model }, entries: [entry] }, engine.registry, () => [])
  const displayName = engine.registry.byName(model)?.displayName ?? model
  const notFound = () => new Problem('not_found', `There is no such ${displayName}.`)
  // No row can have such a name.
  if (plan.errors.any) throw notFound()
  const [found] = await check(reader(db), engine, plan, actor, conditions)
  if (found?.row === undefined) throw notFound()
  const attempt = () => transaction(db, (tx) => attemptOnce(tx, engine, actor, plan, removal), patient)
  try {
    if (!(await retrying(attempt, { ...tries, canRetry: isCollision }))) throw notFound()
  } catch (error) {
    if (error instanceof Refusal) throw problemOf(error)
    throw isCollision(error) ? busy(error) : asProblem(error)
  }
}

/** @returns whether there was a row */
async function attemptOnce(
  tx: Tx,
  engine: Engine,
  caller: Actor,
  plan: Plan,
  { conditions, requestId, precondition }: Removal,
): Promise<boolean> {
  if (precondition !== undefined) {
    await withEngine(tx, async (engineTx) => lockRow(engineTx, plan))
    await precondition(tx)
  }
  return withEngine(tx, async (engineTx) => {
    const { actor, audited: changes } = await apply(engineTx, engine, plan, caller, conditions)
    if (changes.length > 0) audit(engineTx, { actor, action: 'delete', changes, requestId })
    return changes.length > 0
  })
}

/** After the lock of the name, as all others who write it. */
async function lockRow(tx: EngineTx, { steps }: Plan): Promise<void> {
  await lock(tx, steps)
  for (const { model, identifiers } of steps) {
    const where = [...identifiers.keys()].map((name, index) => `${quoted(columnOf(model, name))} = $${index + 1}`)
    const text = `SELECT pk FROM ${quoted(model.table)} WHERE ${where.join(' AND ')} FOR UPDATE`
    await tx.query(z.object({}), { text, values: [...identifiers.values()] })
  }
}

/** What changed after the check. */
const problemOf = ({ reason, logs, cause }: Refusal): Problem =>
  new Problem(reason, logs.map((line) => sentence(line.replace(/^rolled back: /, ''))).join(' '), { cause })
