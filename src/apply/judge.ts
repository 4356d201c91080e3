import type { EngineReader } from '../db/engine-tx.ts'
import { own } from '../json-object.ts'
import type { Field } from '../models/define.ts'
import { type Actor, isOutOfBonds } from '../permissions.ts'
import { type LabelledRow, placeOf } from '../plan/claims.ts'
import type { Plan } from '../plan/compile.ts'
import type { Effect } from '../plan/effect.ts'
import { type Conditions, type Engine, isReviewed as isOfReview, ownerFor } from '../plan/engine.ts'
import { inspect, loadAhead, mostAhead } from '../plan/inspect.ts'
import type { Loader } from '../plan/load.ts'
import type { Look } from '../plan/look.ts'
import { ownLooks, renameLooks } from '../plan/looks.ts'
import { findByOldName } from '../plan/rename.ts'
import { without } from '../plan/reset.ts'
import { Resolver } from '../plan/resolve.ts'
import { RowsNamed } from '../plan/rows-named.ts'
import type { Key } from '../plan/statements.ts'
import type { Step } from '../plan/step.ts'
import { type Identity, keysOf, rowAfter, toMaskedValues } from '../plan/storage.ts'
import { yielding } from '../plan/yielding.ts'
import { gainsOf } from '../rights/gains.ts'
import { forbidden } from '../rights/policy.ts'
import { turns } from '../turns.ts'
import { describeChange, givenBy, lookedAt } from './changes.ts'
import { type Finding, type Given, type Objection, type Refused, reasonOf, type Skipped } from './finding.ts'
import { removal, replacedBy } from './follow.ts'
import { claimedWithout, ownersConcerned, ownershipOf } from './ownership.ts'
import {
  deletesLeft,
  type OfStack,
  objectionsOf,
  otherNumber,
  readGoing,
  readStack,
  readTaken,
  type Stack,
} from './stack.ts'
import { rowName } from './words.ts'

type Cause = Finding['cause']

type Writing = {
  /** Locks the rows that follow from the document, before they are judged. */
  readonly lock: (rows: readonly LabelledRow[]) => Promise<void>
  /** Reads behind the writes of all findings so far: rights are what the database computes of them. */
  readonly behind: EngineReader
}

type Case = {
  readonly engine: Engine
  readonly plan: Plan
  /** The submitter. A promise is answered together with the first rows. */
  readonly actor: Actor | Promise<Actor>
  readonly conditions: Conditions
  /** Only an apply has it: its findings are written. */
  readonly writing?: Writing
  /** Ends a check. */
  readonly signal?: AbortSignal
}

/**
 * Judges the entries of a document, in their order, and then the rows that follow from them. It yields one finding for each row:
 * its change, its owner, and all objections. The check collects the findings, the apply collects them and writes them, a single
 * write is the apply of one entry. So a rule that is written here holds on every path (docs/adr/0050-one-judge.md).
 *
 * It only reads, and it does not stop at an objection: the caller decides how far to go.
 */
export async function* judge(
  loader: Loader,
  { engine, plan, actor: submitter, conditions, writing, signal }: Case,
): AsyncGenerator<Finding | Skipped | Given | OfStack | Refused> {
  const { registry } = engine
  const { steps } = plan
  const isReviewed = isOfReview(conditions)
  const { world, reader } = loader
  const resolver = new Resolver(loader, submitter)
  const takeTurns = turns(signal)
  const context = { engine, loader, resolver, takeTurns, isReviewed }
  const ahead = (of: readonly Step[], from: number) => loadAhead(context, of.slice(from, from + mostAhead))
  // The actor may share the round trip of the first rows.
  const [actor] = await Promise.all([resolver.actor(), ahead(steps, 0)])
  const claims = claimedWithout(actor, conditions, steps, registry.models)
  if (claims.length > 0) {
    yield { cause: 'refused', objections: claims.map((claim) => ({ is: 'claimed', actor, ...claim })) }
    return
  }
  const { stack: name } = conditions
  if (actor.renews !== true && isOutOfBonds(actor, name)) {
    yield { cause: 'refused', objections: [{ is: 'unstacked', actor }] }
    return
  }
  const findings: Finding[] = []
  const skipped: Look[] = []
  const said = new RowsNamed()
  let entry = 0
  const ids = new Set(steps.map(({ id }) => id))
  /** The name of a new row in changes, where its entry has no id. It differs from the ids of all entries. */
  const nameOf = (effect: Effect): string => {
    let name = rowName(effect)
    while (ids.has(name)) name = `${name}'`
    return name
  }

  async function* judgeRow(effect: Effect, cause: Cause, others: readonly Objection[] = []) {
    const { step, row, isForeign, action } = effect
    const identity = action === 'create' ? await loader.identify(step.model, effect.pk) : undefined
    const key = isForeign ? identity?.pk : (row?.pk ?? identity?.pk)
    if (cause === 'entry' && !isForeign && key !== undefined) said.addEffect(effect, key, entry, conditions)
    // A plan shows it.
    const takeover = conditions.allow.takeover || isReviewed
    const ownership = ownershipOf(effect, actor, { ...conditions, allow: { ...conditions.allow, takeover } })
    const { table } = step.model
    const given = isForeign || row === undefined ? undefined : world.givenTo(table, row.pk)
    const earlier = { tagOf, given }
    const change = describeChange(effect, earlier, ownership?.becomes)
    // The change of a new row does not have the owner that it gets.
    const label = action === 'create' && step.model.isLabelled === true ? ownerFor(step, conditions) : null
    const looked = isReviewed ? [lookedAt(effect, earlier), label] : undefined
    const objections = [...others, ...ofEntry(effect), ...ofOwner(effect, ownership, conditions)]
    const tag = row === undefined ? `!KeyOf ${step.id ?? nameOf(effect)}` : undefined
    const finding: Finding = { ...effect, cause, ownership, change, looked, identity, tag, objections }
    findings.push(finding)
    yield finding
    resolver.found(step, key)
    if (!isForeign) resolver.wrote(step)
    if (key !== undefined && !isForeign) remember(finding, key)
  }

  /** The text in place of a key in a field; undefined for the key of a row that the document does not create. */
  function tagOf({ reference }: Field, key: unknown): string | undefined {
    const [row] = keysOf(key)
    return row === undefined ? undefined : world.entryOf(world.tableOf(reference), row)?.tag
  }

  /** Does to the world what a finding does to the database. */
  function remember(finding: Finding, key: Key): void {
    const { cause, step, row, action, values, changed, errors, ownership, identity, tag, change } = finding
    const { model, edits } = step
    const becomes = ownership?.becomes
    if (action === 'delete') world.remove(model, key, entry)
    else if (cause === 'taken') world.take(model, key, becomes)
    if (action === 'delete' || cause === 'taken') return
    const before = { ...(row ?? newRow(step, identity)), ...(becomes !== undefined && { owner: becomes }), pk: key }
    world.put(model, key, {
      values: action === 'leave' ? toMaskedValues(model, before) : values,
      row: () => rowAfter(model, before, changed, values, engine.keyring),
      edits,
      entry: action === 'leave' ? undefined : entry,
      isNew: row === undefined,
      isBroken: errors.any,
      tag,
      given: change.action === 'create' || change.action === 'update' ? givenBy(change, step) : undefined,
    })
  }

  /** The columns of a new row that are no fields. */
  const newRow = (step: Step, identity: Identity | undefined) => ({
    ...identity,
    ...step.model.discriminator,
    ...(step.model.isLabelled && {
      owner: ownerFor(step, conditions),
      created_by: actor.pk,
      created_by_name: actor.username,
      created_at: new Date().toISOString(),
    }),
  })

  async function* judgeStep(step: Step, cause: Cause, others: readonly Objection[] = []) {
    await takeTurns()
    const found = await resolver.walk(() => findByOldName(world, step))
    const alone = await inspect(context, found)
    const beside = await resolver.walk(() => yielding(world, found, alone, conditions.replaceProvider))
    const asked = beside === undefined ? alone : await inspect(context, beside)
    const named = said.namedBefore(asked)
    const effect = named.length === 0 ? asked : await inspect(context, without(asked.step, named))
    if (step.isLeft === true && effect.row === undefined) {
      yield { cause: 'skipped', step } as const
      return
    }
    const owners = ownersConcerned(effect, actor, conditions)
    const why = await forbidden(writing?.behind ?? reader, engine, actor, effect, owners)
    const follows = cause !== 'entry'
    const denials: Objection[] = why === null ? [] : [{ is: 'denied', effect, actor, why, follows }]
    const unseen = resolver.unseen().map((each) => ({ is: 'unseen', ...each, actor }) as const)
    if (cause === 'entry') addKeyError(effect, conditions)
    const createOnly = conditions.createOnly && cause === 'entry' && !plan.errors.any
    yield* judgeRow(effect, cause, [
      ...denials,
      ...unseen,
      ...others,
      ...(step.mustExist && effect.row === undefined ? [{ is: 'missing', step } as const] : []),
      ...(createOnly && effect.row !== undefined ? [{ is: 'exists', effect } as const] : []),
    ])
    yield* judgeTaken(effect)
  }

  /** An existing row that an entry takes through a reference. It is changed as if an entry named it. */
  async function* judgeTaken(effect: Effect) {
    for (const taken of effect.takes) {
      if (taken.row === undefined || world.isJudged(taken.step.model.table, taken.row.pk)) continue
      const why = await forbidden(reader, engine, actor, taken, ownersConcerned(taken, actor, conditions))
      yield* judgeRow(
        taken,
        'taken',
        why === null ? [] : [{ is: 'denied', effect, actor, why: `${why} for a row that it names` }],
      )
    }
  }

  for (const [index, each] of steps.entries()) {
    entry = each.entry ?? index
    if (index > 0 && index % mostAhead === 0) await ahead(steps, index)
    await takeTurns()
    const step = await resolver.walk(() => resolver.evaluateConditions(each))
    if (step !== null) yield* judgeStep(step, 'entry')
    else {
      if (name !== null) {
        const named = { ...each, attrs: new Map() }
        const { identifiers } = await resolver.walk(() => resolver.entry(named))
        // What a skipped entry looks up is not reported, and not with the next entry.
        resolver.unseen()
        skipped.push(...ownLooks(each, identifiers), ...renameLooks(each))
      }
      yield { cause: 'skipped', step: each }
    }
  }
  /** The rows, read again behind the locks: another transaction may have changed, renamed or deleted some of them before. */
  const locked = async <Row extends LabelledRow>(
    found: readonly Row[],
    find: () => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> => {
    if (writing === undefined || found.length === 0) return found
    await writing.lock(found)
    const isLocked = new Set(found.map(placeOf))
    return (await find()).filter((row) => isLocked.has(placeOf(row)))
  }
  let stack: Stack | undefined
  if (name !== null) {
    const asked = { actor, conditions, findings: [...findings], skipped }
    stack = await readStack(loader, name, asked)
    const findLeft = async () => {
      stack = await readStack(loader, name, asked)
      return stack.left
    }
    const isDeleted = deletesLeft(stack, conditions)
    const left = isDeleted ? await locked(stack.left, findLeft) : stack.left
    const other = otherNumber(left, conditions, actor)
    if (other.length > 0) yield { cause: 'refused', objections: other }
    const { stays: heldBy } = stack
    const removals = isDeleted ? left.map((row): Step => ({ ...removal(row), heldBy })) : []
    for (const [index, each] of removals.entries()) {
      if (index % mostAhead === 0) await ahead(removals, index)
      yield* judgeStep(each, 'left')
    }
  }
  const findReplaced = () => replacedBy(loader, findings, conditions)
  const replaced = await locked(await findReplaced(), findReplaced)
  for (const row of replaced) yield* judgeStep(removal(row), 'replaced')
  if (stack !== undefined) {
    const own = await readTaken(loader, stack.name, findings)
    const taken = [...own, ...(await readGoing(loader, stack.name, findings, actor))]
    yield { cause: 'stack', stack, taken, objections: objectionsOf(stack, taken, conditions, actor) }
  }
  // The worker reads the gains of these documents: a check would not use them.
  if (writing === undefined && (isReviewed || conditions.allow.grants)) return
  if (plan.errors.any || findings.some(({ objections }) => objections.some((each) => reasonOf(each) !== 'conflict')))
    return
  const gains = await gainsOf(writing?.behind ?? reader, world, steps, isReviewed)
  if (gains === null) return
  const isMeant = conditions.allow.grants || isReviewed
  yield { cause: 'given', gains, objections: isMeant ? [] : [{ is: 'grants', gains, actor }] }
}

/** Whether both names of a rename are there: its other errors follow from that. */
function ofEntry(effect: Effect): Objection[] {
  if (effect.step.rename === 'both') return [{ is: 'both', effect }]
  return effect.errors.any ? [{ is: 'invalid', errors: effect.errors }] : []
}

function ofOwner(effect: Effect, ownership: Finding['ownership'], conditions: Conditions): Objection[] {
  const label = ownerFor(effect.step, conditions)
  return ownership?.is === "another's" ? [{ is: 'owned', effect, ownership, label }] : []
}

/** Adds an error when the row has another key than the submission expects. */
function addKeyError({ step, row, label, errors }: Effect, { expectedKeys }: Conditions): void {
  const expected = own(expectedKeys, step.id)
  if (expected === undefined || expected === row?.pk) return
  const actual = row === undefined ? 'is not there yet' : `has the key ${row.pk}`
  const what = `The submission's ${step.model.displayName} ${JSON.stringify(label)}`
  const within = step.path.at(-1) === 'provider' ? step.path.slice(0, -1) : []
  const message = `${what} ${actual}: leave this field out, or send its key.`
  errors.add([...within, 'app', 'provider'], 'wrong_reference', message)
}
