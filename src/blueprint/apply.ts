import { createHash } from 'node:crypto'
import type { Tx } from '../db/client.ts'
import { brokenConstraint } from '../db/failures.ts'
import { sql } from '../db/sql.ts'
import type { Faults, FieldPath } from '../errors.ts'
import type { Actor } from '../permissions.ts'
import { lookAhead } from './ahead.ts'
import type { Plan, Step } from './compile.ts'
import { type Engine, type Finding, inspect, lacking, verbOf } from './inspect.ts'
import type { Keys } from './resolve.ts'
import { mirrorRows, newIdentity, packChanged, packNew } from './rows.ts'
import { insert, remirror, remove, update } from './statements.ts'

/** What changed, for the audit row: member names, never values. */
export type Change = {
  model: string
  key: string | number
  action: 'create' | 'update' | 'delete'
  members: readonly string[]
}

export type ApplyResult = {
  /** Sentences in order, one for each thing that happened. */
  readonly logs: readonly string[]
  readonly changes: readonly Change[]
  /** Values that the service made up, by entry and member. */
  readonly generated: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Why a document was not applied: a fact that the submitter can read and mend. Rolls the transaction back. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly reason: 'invalid' | 'permission_denied' | 'precondition_failed' | 'conflict'
  readonly logs: readonly string[]
  constructor(reason: Refusal['reason'], logs: readonly string[], cause?: unknown) {
    super(logs.join('; '), { cause })
    this.reason = reason
    this.logs = logs
  }
}

/** What must hold beside the document. */
export type Conditions = {
  /** `If-None-Match: *`: nothing that the document names may be there yet. */
  readonly createOnly: boolean
  /** Keys that entries must turn out to have, by entry id. */
  readonly expectedKeys: Readonly<Record<string, number>>
}

/**
 * Applies a plan inside the caller's transaction, entry by entry, in document order.
 *
 * @throws {Refusal} when an entry has a fault that only the database could show, or the actor may not
 */
export async function apply(
  tx: Tx,
  engine: Engine,
  plan: Plan,
  actor: Actor,
  conditions: Conditions,
): Promise<ApplyResult> {
  if (plan.faults.any) throw new Refusal('invalid', faultLines(plan.faults))
  lock(tx, plan.steps)
  const looks = await lookAhead(tx, engine.registry, plan.steps, { draw: true })
  const keys: Keys = new Map()
  const logs: string[] = []
  const changes: Change[] = []
  const generated: Record<string, Readonly<Record<string, string>>> = {}
  for (const step of plan.steps) {
    const finding = await inspect(tx, engine, step, keys, looks.get(step))
    refuse(finding, actor, conditions)
    const key = await write(tx, engine, finding)
    checkKey(finding, key, conditions)
    if (step.id !== undefined && key !== undefined) keys.set(step.id, { key, isNew: finding.row === undefined })
    if (step.id !== undefined && Object.keys(finding.generated).length > 0) generated[step.id] = finding.generated
    logs.push(sentence(finding, key))
    const { action } = finding
    if (key !== undefined && (action === 'create' || action === 'update' || action === 'delete')) {
      changes.push({ model: step.model.name, key, action, members: action === 'delete' ? [] : finding.changed })
    }
  }
  return { logs, changes, generated }
}

/** Names that are being written: two applies of one slug run one after the other. One order for all, so none deadlock. */
function lock(tx: Tx, steps: readonly Step[]): void {
  const keys = new Set(steps.map((step) => lockKey(step.model.table, [...step.identifiers.values()])))
  const sorted = [...keys].sort()
  tx.send(sql`SELECT pg_advisory_xact_lock(k) FROM unnest(${sorted}::bigint[]) k`)
}

/** @returns a 64-bit key as text */
export function lockKey(table: string, identifiers: readonly unknown[]): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([table, identifiers]))
    .digest()
  return digest.readBigInt64BE().toString()
}

/** In the order in which `check` refuses: who may not is told nothing else, and a taken name goes before other faults. */
function refuse(finding: Finding, actor: Actor, { createOnly }: Conditions): void {
  const { faults, step, label } = finding
  const what = `${step.model.noun} ${JSON.stringify(label)}`
  const missing = lacking(actor, finding)
  if (missing !== null) {
    throw new Refusal('permission_denied', [
      `rolled back: ${actor.username} may not ${verbOf(finding)} ${what}: the permission ${missing} is missing`,
    ])
  }
  if (createOnly && finding.row !== undefined) {
    throw new Refusal('precondition_failed', [
      `rolled back: ${what} is there already, and If-None-Match: * allows only to create`,
    ])
  }
  if (faults.any) throw new Refusal('invalid', faultLines(faults))
}

function checkKey({ step }: Finding, key: string | number | undefined, { expectedKeys }: Conditions): void {
  const expected = step.id === undefined ? undefined : expectedKeys[step.id]
  if (expected !== undefined && expected !== key) {
    throw new Refusal('invalid', [
      `rolled back: ${step.model.noun} has the key ${key}, but the submission says ${expected}`,
    ])
  }
}

/** Sends what the finding says; waits only for a key that nobody drew. */
async function write(tx: Tx, engine: Engine, finding: Finding): Promise<string | number | undefined> {
  const { step, action, row, values, changed } = finding
  const { model } = step
  const { keyring, registry } = engine
  const explain = (error: unknown) => asRefusal(error, finding)
  switch (action) {
    case 'create': {
      const identity = newIdentity(model, finding.pk)
      const packed = packNew(model, identity, values, keyring)
      const statement = insert(model, registry, packed, mirrorRows(model, values))
      if (identity.pk !== undefined) {
        tx.send(statement, explain)
        return identity.pk
      }
      const [made] = await tx.query<{ pk: number }>(statement).catch((error: unknown) => {
        throw explain(error)
      })
      return made?.pk
    }
    case 'update': {
      if (row === undefined) throw new Error('an update without a row')
      const mirrored = changed.filter(
        (name) => model.members.get(name)?.reference !== undefined && model.members.get(name)?.place.in === 'settings',
      )
      const statements = [
        ...update(model, registry, row.pk, packChanged(model, row, changed, values, keyring)),
        ...remirror(model, row.pk, mirrored, mirrorRows(model, values, mirrored)),
      ]
      for (const statement of statements) tx.send(statement, explain)
      return row.pk
    }
    case 'delete':
      if (row !== undefined) tx.send(remove(model, row.pk), explain)
      return row?.pk
    case 'unchanged':
    case 'leave':
      return row?.pk
    default:
      return action satisfies never
  }
}

/** A constraint speaks last: what two documents claimed at once, or a row that something still refers to. */
function asRefusal(error: unknown, { step, action, label }: Finding): unknown {
  const broken = brokenConstraint(error)
  if (broken === undefined) return error
  const what = `${step.model.noun} ${JSON.stringify(label)}`
  const why = {
    unique: `a value that must be unique is taken (${broken.constraint})`,
    reference:
      action === 'delete'
        ? `something still refers to it (${broken.constraint})`
        : `a row that it refers to is gone (${broken.constraint})`,
    check: `a rule of the database does not hold (${broken.constraint})`,
  }[broken.kind]
  return new Refusal('conflict', [`rolled back: ${what} could not be written: ${why}`], error)
}

function sentence({ step, action, label, changed }: Finding, key: string | number | undefined): string {
  const what = `${step.model.noun} ${JSON.stringify(label)}`
  switch (action) {
    case 'create':
      return `${what} created (pk ${key})`
    case 'update':
      return `${what} updated: ${changed.join(', ')}`
    case 'unchanged':
      return `${what} unchanged`
    case 'delete':
      return `${what} deleted (pk ${key})`
    case 'leave':
      return step.state === 'absent' ? `${what} was not there` : `${what} left as it is`
    default:
      return action satisfies never
  }
}

const faultLines = (faults: Faults): string[] =>
  faults.list.map(({ path, message }) => `rolled back: ${inPath(path)}${message}`)

const inPath = (path: FieldPath) => (path.length > 0 ? `${path.join('.')}: ` : '')
