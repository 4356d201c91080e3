import { z } from 'zod'
import type { EngineTx } from '../db/engine-tx.ts'
import { brokenConstraint } from '../db/errors.ts'
import { nameLock } from '../db/locks.ts'
import type { Step } from '../plan/compile.ts'
import type { Engine, Mode } from '../plan/engine.ts'
import type { Finding } from '../plan/inspect.ts'
import { insert, remove, update, updateReferenceRows } from '../plan/statements.ts'
import { newIdentity, type Origin, plannedIdentity, referenceRowsOf, toChangedRow, toNewRow } from '../plan/storage.ts'
import { decidesRights } from '../rights/policy.ts'
import { lockRights } from '../rights/rights.ts'
import type { AuditedChange } from './audit.ts'
import { Refusal, rowName } from './refusal.ts'

const keyRow = z.object({ pk: z.int() })

/**
 * Waits for other transactions that write the same names, or that write rights. All take the locks in one order, and
 * before they write a row, so that they do not deadlock.
 */
export function lock(tx: EngineTx, steps: readonly Step[]): void {
  if (steps.some(decidesRights)) lockRights(tx)
  const keys = new Set(steps.flatMap(locksOf))
  const sorted = [...keys].sort()
  tx.send({ text: 'SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) k', values: [sorted] })
}

/** The lock of the identifiers, and of each name that is unique in all cases: no index of the database guards that. */
function locksOf({ model, identifiers, attrs, was }: Step): string[] {
  const names = [...identifiers, ...attrs].filter(([name]) => model.fields.get(name)?.folded === true)
  const before = was === undefined ? [] : [[was]]
  return [[...identifiers.values()], ...before, ...names.map(([, value]) => [value])].map((each) =>
    nameLock(model.table, each),
  )
}

/**
 * Writes the finding. Waits for the database only when the key is not known yet.
 *
 * @param origin of a new row
 * @param mode a plan takes no key from a sequence
 * @returns the key of the row
 */
export async function execute(
  tx: EngineTx,
  engine: Engine,
  finding: Finding,
  origin: Origin,
  mode: Mode = 'apply',
): Promise<string | number | undefined> {
  const { step, action, row, values, changed } = finding
  const { model } = step
  const { keyring, registry } = engine
  const explain = (error: unknown) => asRefusal(error, finding)
  switch (action) {
    case 'create': {
      const identity = mode === 'plan' ? plannedIdentity(model, finding.pk) : newIdentity(model, finding.pk)
      const newRow = toNewRow(model, identity, values, origin, keyring)
      const statement = insert(model, registry, newRow, referenceRowsOf(model, values))
      if (identity.pk !== undefined) {
        tx.send(statement, explain)
        return identity.pk
      }
      const [inserted] = await tx.query(keyRow, statement).catch((error: unknown) => {
        throw explain(error)
      })
      return inserted?.pk
    }
    case 'update': {
      if (row === undefined) throw new Error('an update without a row')
      const references = changed.filter(
        (name) => model.fields.get(name)?.reference !== undefined && model.fields.get(name)?.storage.in === 'settings',
      )
      const statements = [
        ...update(model, registry, row.pk, toChangedRow(model, row, changed, values, keyring)),
        ...updateReferenceRows(model, row.pk, references, referenceRowsOf(model, values, references)),
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

/**
 * @param isRelabelled the row got another owner
 * @returns the change for the audit row; undefined when nothing was written
 */
export function changeOf(
  { step: { model }, action, changed }: Finding,
  key: string | number | undefined,
  isRelabelled = false,
): AuditedChange | undefined {
  if (key === undefined) return undefined
  if (action === 'unchanged' || action === 'leave')
    return isRelabelled ? { model: model.name, key, action: 'update', fields: ['owner'] } : undefined
  const fields = action === 'delete' ? [] : [...changed, ...(isRelabelled ? ['owner'] : [])]
  return { model: model.name, key, action, fields }
}

/** Converts a violated constraint: two documents took one value at the same time, or a reference has no row. */
function asRefusal(error: unknown, finding: Finding): unknown {
  const broken = brokenConstraint(error)
  if (broken === undefined) return error
  const name = broken.constraint === undefined ? '' : ` (${broken.constraint})`
  const why = {
    unique: `a value that must be unique is taken${name}`,
    reference:
      finding.action === 'delete' ? `something still refers to it${name}` : `a row that it refers to is gone${name}`,
    check: `a rule of the database does not hold${name}`,
  }[broken.kind]
  return new Refusal('conflict', [`rolled back: ${rowName(finding)} could not be written: ${why}`], error)
}
