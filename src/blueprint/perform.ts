import type { Tx } from '../db/client.ts'
import { brokenConstraint } from '../db/failures.ts'
import { sql } from '../db/sql.ts'
import { sha256 } from '../ids.ts'
import type { Step } from './compile.ts'
import { decidesRights } from './escalation.ts'
import type { Engine, Finding } from './inspect.ts'
import { Refusal } from './refusal.ts'
import { lockRights } from './rights.ts'
import { mirrorRows, newIdentity, packChanged, packNew } from './rows.ts'
import { insert, remirror, remove, update } from './statements.ts'

/** What changed, for the audit row: member names, never values. */
export type Change = {
  model: string
  key: string | number
  action: 'create' | 'update' | 'delete'
  members: readonly string[]
}

/**
 * What is being written waits for others who write it: rights as a whole, and each name. One order for all, and before
 * any row that a document names is touched, so none deadlock.
 */
export function lock(tx: Tx, steps: readonly Step[]): void {
  if (steps.some(decidesRights)) lockRights(tx)
  const keys = new Set(steps.map((step) => lockKey(step.model.table, [...step.identifiers.values()])))
  const sorted = [...keys].sort()
  tx.send(sql`SELECT pg_advisory_xact_lock(k) FROM unnest(${sorted}::bigint[]) k`)
}

/** @returns a 64-bit key as text */
export function lockKey(table: string, identifiers: readonly unknown[]): string {
  return sha256(JSON.stringify([table, identifiers]))
    .readBigInt64BE()
    .toString()
}

/** Sends what the finding says; waits only for a key that nobody drew. @returns the key of the row */
export async function perform(tx: Tx, engine: Engine, finding: Finding): Promise<string | number | undefined> {
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

/** @returns what the audit row tells of it; undefined when nothing was written */
export function changeOf({ step, action, changed }: Finding, key: string | number | undefined): Change | undefined {
  if (key === undefined || action === 'unchanged' || action === 'leave') return undefined
  return { model: step.model.name, key, action, members: action === 'delete' ? [] : changed }
}

/** What a constraint says: what two documents claimed at once, or a row that something still refers to. */
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
