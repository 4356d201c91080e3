import type { EngineReader, EngineTx } from '../db/engine-tx.ts'
import { permissionNames } from '../models/registry.ts'
import type { Actor, ActorKeys } from '../permissions.ts'
import { type LabelledRow, leftEmpty, orphansOf } from '../plan/claims.ts'
import type { Plan } from '../plan/compile.ts'
import { type Conditions, type Engine, ownerFor } from '../plan/engine.ts'
import { Loader } from '../plan/load.ts'
import { currentActor } from '../rights/actor.ts'
import { announcedGains } from '../rights/gains.ts'
import { hasSuperuser, originOf, superuserErrors } from '../rights/policy.ts'
import { recordWriter } from '../rights/writer.ts'
import { turns } from '../turns.ts'
import type { AuditedChange } from './audit.ts'
import type { Change } from './changes.ts'
import { changeOf, execute, lock, lockRows } from './execute.ts'
import { type Finding, keyOf, type Objection, type Skipped } from './finding.ts'
import { changesOfLosses, objectOf } from './history.ts'
import { judge } from './judge.ts'
import { ReferenceNames } from './reference-names.ts'
import { Refusal, refuseIfAny } from './refusal.ts'
import { Review } from './review.ts'
import { type OfStack, stackLines, writeMembers } from './stack.ts'
import { announcementLines, emptyLines, gainsLine, linesOf, orphanLines, rowName } from './words.ts'
import { Writes } from './writes.ts'

export type ApplyResult = {
  /** The submitter, with the rights at the time of the apply. */
  readonly actor: Actor
  /** A sentence for each entry, in document order, then one for each effect on other rows. */
  readonly logs: readonly string[]
  /** The change of each entry, and of each row that changes because of them. */
  readonly changes: readonly Change[]
  /** The digests of each entry's state and change, in a plan and in the apply of a reviewed one. */
  readonly digests: readonly string[]
  /** The changes of the rows that were written. */
  readonly audited: readonly AuditedChange[]
  /** Values that the service generated, by field, and by entry: its id, or the name of its row. */
  readonly generated: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** The key of the first entry's row. */
  readonly key: string | number | undefined
  /** What the reviewed plan would have changed, when nothing is left of it. */
  readonly stands?: readonly Objection[] | undefined
  /** Whether the members of the stack differ from those before. */
  readonly isRestacked: boolean
}

/** Entries that were walked, of all that the document has. */
export type Progress = { readonly done: number; readonly total: number }
export type OnProgress = (progress: Progress) => void

type Options = {
  /** The digests of the plan that was reviewed: a difference is refused. */
  readonly reviewed?: readonly string[] | undefined
  /** Looks for more objections, behind the locks of the names and before the judge. They are reported with those of the judge. */
  readonly objecting?: () => Promise<readonly Objection[]>
  readonly onProgress?: OnProgress | undefined
}

/**
 * Applies a plan in the caller's transaction: lock, judge, write, follow, result. It judges all entries before it writes one,
 * except that rights which earlier entries change are read behind their writes. The mode `plan` does the same, and the caller
 * rolls back: only effects that a rollback does not undo are left out (docs/adr/0040-a-plan-is-an-apply-that-is-rolled-back.md).
 *
 * @param submitter read again after the locks are taken: a transaction that held them may have changed the submitter's
 *   rights
 * @throws {Refusal} when the judge objects to entries, with all objections
 */
export async function apply(
  tx: EngineTx,
  engine: Engine,
  plan: Plan,
  submitter: Actor | ActorKeys,
  conditions: Conditions,
  { reviewed, objecting = async () => [], onProgress = () => {} }: Options = {},
): Promise<ApplyResult> {
  const { mode } = conditions
  const permissions = permissionNames(engine.registry)
  const writes = new Writes(tx, engine.registry)
  const takeTurns = turns()
  const objections: Objection[] = []
  if (plan.errors.any) objections.push({ is: 'invalid', errors: plan.errors })
  const findings: Finding[] = []
  /** Sentences, with their findings: names are read for all at once. */
  const lines: (string | Finding | Skipped)[] = [...(plan.skipped ?? [])]
  let done = 0
  const entryDone = () => {
    done += 1
    onProgress({ done, total: plan.steps.length })
  }
  const generated: Record<string, Readonly<Record<string, string>>> = {}
  const review = mode === 'plan' || reviewed !== undefined ? new Review(engine.keyring, reviewed) : undefined

  await lock(tx, plan.steps, conditions)
  objections.push(...(await objecting()))
  const reading = currentActor(tx, submitter).then(orGone)
  let hadSuperuser: boolean | undefined
  let written = 0
  let ofStack: OfStack | undefined
  /** Writes the findings so far; nothing behind an objection, which ends in a refusal. */
  const write = async () => {
    if (objections.length > 0) return
    const actor = await reading
    const next = findings.slice(written)
    for (const finding of next) {
      await takeTurns()
      execute(writes, engine, finding, originOf(actor, ownerFor(finding.step, conditions), permissions))
      recordWriter(writes, actor, finding, keyOf(finding))
    }
    written = findings.length
    writes.flush()
  }
  const behind: EngineReader = {
    query: (row, statement) => write().then(() => tx.query(row, statement)),
    attempt: (row, statement, limits) => write().then(() => tx.attempt(row, statement, limits)),
  }
  const writing = { lock: (rows: readonly LabelledRow[]) => lockRows(tx, rows), behind }
  const loader = new Loader(tx, engine.registry, mode)
  const walk = judge(loader, { engine, plan, actor: reading, conditions, writing })
  for await (const finding of walk) {
    if (finding.cause === 'skipped') {
      lines.push(finding)
      entryDone()
      continue
    }
    if (finding.cause === 'refused') {
      objections.push(...finding.objections)
      continue
    }
    const actor = await reading
    if (finding.cause === 'given') {
      objections.push(...finding.objections)
      review?.compareFollowing('gains', finding.gains.digest)
      lines.push(gainsLine(finding, actor, conditions))
      continue
    }
    if (finding.cause === 'stack') {
      ofStack = finding
      objections.push(...finding.objections)
      const taken = finding.taken.map(({ finding: { row, step }, from, going }) =>
        going === undefined ? [from, step.model.name, row?.pk] : [from, going.model, going.key],
      )
      if (taken.length > 0) review?.compareFollowing('stacks', JSON.stringify(taken))
      continue
    }
    hadSuperuser ??= await hasSuperuser(tx, actor, plan.steps)
    review?.compare(finding)
    objections.push(...finding.objections)
    if (objections.length > 0) continue
    findings.push(finding)
    lines.push(finding)
    if (Object.keys(finding.generated).length > 0) {
      const entry = finding.step.id ?? rowName(finding)
      generated[entry] = { ...generated[entry], ...finding.generated }
    }
    if (finding.cause === 'entry') entryDone()
  }
  refuseIfAny(objections.length > 0 ? [...objections, ...(review?.changed ?? [])] : [])
  await write()

  const actor = await reading
  const names = await ReferenceNames.read(loader, actor, findings)
  const logs = lines.flatMap((line) => {
    if (typeof line === 'string') return line
    return linesOf(line.cause === 'skipped' ? line : names.in(line), mode)
  })
  for (const gains of await announcedGains(tx, loader.world)) logs.push(...announcementLines(gains, actor))
  const changes: Change[] = []
  const audited: AuditedChange[] = []
  const toChange = withEntries()
  for (const finding of findings) {
    const named = names.in(finding)
    if (finding.cause !== 'taken' || named.change.action === 'update') changes.push(toChange(named))
    const written = changeOf(named)
    const owner = ownerFor(finding.step, conditions)
    if (written !== undefined) audited.push({ ...written, object: objectOf(named, changes.length - 1, owner) })
  }
  if (ofStack !== undefined) logs.push(...stackLines(ofStack, actor, conditions))
  logs.push(...orphanLines(await orphansOf(loader, findings), actor, conditions))
  const left = leftEmpty(loader.world, findings)
  logs.push(...emptyLines(left, actor, mode))
  audited.push(...changesOfLosses(left, names))
  const errors = await superuserErrors(tx, engine, actor, findings, hadSuperuser ?? true)
  refuseIfAny([...(review?.objections ?? []), ...(errors.any ? [{ is: 'invalid', errors } as const] : [])])
  const isRestacked = ofStack !== undefined && (await writeMembers(tx, ofStack, findings, conditions))
  const [first] = findings
  const key = first && keyOf(first)
  return {
    actor,
    logs,
    changes,
    digests: review?.planned ?? [],
    audited,
    generated,
    key,
    isRestacked,
    stands: review?.stands === true ? review.changed : undefined,
  }
}

/** Changes in their order, each with the index of its entry where the index does not follow from the one before. */
function withEntries(): (finding: Finding) => Change {
  let next = 0
  return ({ cause, step, change }) => {
    // A row that an entry takes belongs to that entry.
    const entry = cause === 'entry' ? (step.entry ?? next) : cause === 'taken' ? next - 1 : null
    const isNext = entry === next
    if (entry !== null) next = entry + 1
    return isNext ? change : { ...change, entry }
  }
}

function orGone(actor: Actor | null): Actor {
  if (actor === null) throw new Refusal([{ is: 'gone' }])
  return actor
}
