import { z } from 'zod'
import type { EngineTx } from '../db/engine-tx.ts'
import { brokenConstraint } from '../db/errors.ts'
import { nameLock } from '../db/locks.ts'
import type { Model } from '../models/define.ts'
import type { Step } from '../plan/compile.ts'
import type { Engine, Mode } from '../plan/engine.ts'
import type { Finding } from '../plan/inspect.ts'
import { waysToFind } from '../plan/snapshot-sql.ts'
import { newIdentity, type Origin, plannedIdentity, referenceRowsOf, toChangedRow, toNewRow } from '../plan/storage.ts'
import { decidesRights } from '../rights/policy.ts'
import { lockRights } from '../rights/rights.ts'
import type { AuditedChange } from './audit.ts'
import { Refusal, rowName } from './refusal.ts'
import type { Explain, Writes } from './writes.ts'

type Key = string | number

/**
 * Waits for other transactions that write the same names, or that write rights. All take the locks in one order, and
 * before they write a row, so that they do not deadlock. Waits for the database only for a document that names many.
 *
 * @throws {Refusal} for more names than PostgreSQL can lock
 */
export async function lock(tx: EngineTx, steps: readonly Step[]): Promise<void> {
  const keys = [...new Set(steps.flatMap(locksOf))].sort()
  if (keys.length > alwaysFit) await refuseTooMany(tx, keys.length)
  if (steps.some(decidesRights)) lockRights(tx)
  tx.send({ text: 'SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) k', values: [keys] })
}

/** So many locks fit into every PostgreSQL, beside those of others. */
const alwaysFit = 2_000

const capacity = z.object({ capacity: z.int() })

/** All transactions share one table of locks: when it is full, those of others fail too. */
async function refuseTooMany(tx: EngineTx, count: number): Promise<void> {
  const [row] = await tx.query(capacity, {
    text: `SELECT current_setting('max_locks_per_transaction')::integer
      * (current_setting('max_connections')::integer + current_setting('max_prepared_transactions')::integer) AS capacity`,
    values: [],
  })
  const most = Math.floor((row?.capacity ?? 0) / 2)
  if (count <= most) return
  throw new Refusal('invalid', [
    `rolled back: the document names ${count} rows, and PostgreSQL is set up to lock ${most} of them at once`,
    'send it in parts, or ask the operator to raise max_locks_per_transaction of PostgreSQL',
  ])
}

/** The locks of each way to find the row, and of each name that is unique in all cases: no index of the database guards that. */
function locksOf({ model, identifiers, attrs, was }: Step): string[] {
  const names = [...identifiers, ...attrs].filter(([name]) => model.fields.get(name)?.folded === true)
  const before = was === undefined ? [] : [[was]]
  const ways = waysToFind(model, [...identifiers.keys()]).map((way) => way.map((name) => identifiers.get(name)))
  return [...ways, ...before, ...names.map(([, value]) => [value])].map((each) => nameLock(model.table, each))
}

/**
 * Writes the finding, as soon as something else is read or written.
 *
 * @param origin of a new row
 * @param mode a plan takes no key from a sequence
 * @param owner the label that a row that is there gets; undefined when it keeps its own
 * @returns the key of the row
 */
export function execute(
  writes: Writes,
  engine: Engine,
  finding: Finding,
  origin: Origin,
  { mode = 'apply', owner }: { readonly mode?: Mode; readonly owner?: string | null | undefined } = {},
): Key | undefined {
  const { step, action, row, values, changed } = finding
  const { model } = step
  const { keyring } = engine
  const explain: Explain = (error, count) => asRefusal(error, finding, count)
  const relabelled = owner === undefined ? [] : ([['owner', owner]] as const)
  switch (action) {
    case 'create': {
      const identity = mode === 'plan' ? plannedIdentity(model, finding.pk) : newIdentity(model, finding.pk)
      if (identity.pk === undefined) throw new Error(`${model.name}: a new row has no key`)
      const newRow = toNewRow(model, identity, values, origin, keyring)
      writes.insert(model, identity.pk, newRow, referenceRowsOf(model, values), explain)
      return identity.pk
    }
    case 'update': {
      if (row === undefined) throw new Error('an update without a row')
      const referring = changed.filter(
        (name) => model.fields.get(name)?.reference !== undefined && model.fields.get(name)?.storage.in === 'settings',
      )
      const { columns, links } = toChangedRow(model, row, changed, values, keyring)
      const references = referenceRowsOf(model, values, referring)
      const change = {
        pk: row.pk,
        row: { columns: new Map([...columns, ...relabelled]), links },
        referring,
        references,
      }
      writes.update(model, change, changed.some(isNaming(model)), explain)
      return row.pk
    }
    case 'delete':
      if (row !== undefined) writes.remove(model, row.pk, explain)
      return row?.pk
    case 'unchanged':
    case 'leave': {
      const relabel = { pk: row?.pk ?? '', row: { columns: new Map(relabelled), links: new Map() } }
      if (row !== undefined && owner !== undefined)
        writes.update(model, { ...relabel, referring: [], references: [] }, false, explain)
      return row?.pk
    }
    default:
      return action satisfies never
  }
}

/** Fields whose values only one row may have. */
const isNaming =
  ({ identifiers, unique, fields }: Model) =>
  (name: string): boolean => {
    const field = fields.get(name)
    const isExclusive = field?.storage.in === 'link' && field.storage.exclusive === true
    return isExclusive || field?.folded === true || [...identifiers.flat(), ...unique].includes(name)
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
function asRefusal(error: unknown, finding: Finding, count: number): unknown {
  const broken = brokenConstraint(error)
  if (broken === undefined) return error
  const name = broken.constraint === undefined ? '' : ` (${broken.constraint})`
  const why = {
    unique: `a value that must be unique is taken${name}`,
    reference:
      finding.action === 'delete' ? `something still refers to it${name}` : `a row that it refers to is gone${name}`,
    check: `a rule of the database does not hold${name}`,
  }[broken.kind]
  const { displayName } = finding.step.model
  const what = count === 1 ? rowName(finding) : `one of ${count} ${displayName}s`
  return new Refusal('conflict', [`rolled back: ${what} could not be written: ${why}`], error)
}
