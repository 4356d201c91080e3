import type { EngineReader } from '../db/engine-tx.ts'
import { ErrorList, type FieldPath } from '../errors.ts'
import type { Creator } from '../models/define.ts'
import {
  type Actor,
  allows,
  covers,
  isOfOthers,
  ownersFor,
  type Permission,
  type Right,
  rightName,
  stacksOf,
} from '../permissions.ts'
import { unseenFields } from '../plan/diff.ts'
import { type Effect, lacking, type Owners } from '../plan/effect.ts'
import type { Engine } from '../plan/engine.ts'
import type { Step } from '../plan/step.ts'
import { type Origin, toValues } from '../plan/storage.ts'
import { isSuperuser, rightsHeldBy } from './actor.ts'
import { type Denial, type Holdings, type Policy, policies, type Reporter, type RightsChange } from './policies.ts'
import { askRights, isSuperuserLeft, type Rights, type RightsFacts } from './rights.ts'

/**
 * Decides whether the actor may do what an entry would do. POST, PATCH and blueprints all call it, before they enqueue
 * and again in the transaction. Mistakes that the submitter can fix are added to the effect's errors instead.
 *
 * The rule: a caller can delegate, and take away, only rights that the caller holds. Rights are inherited from roles and
 * superuser flags to groups, to their descendants, to their members, and to tokens. A caller who adds or removes a link of
 * that chain must hold all rights that it passes on. So no sequence of changes gives a user more than the callers hold
 * together, or takes anything else from a user.
 *
 * @param owners the owners of the row: as it is, and as it will be
 * @returns the reason of the denial, for "You may not update group x: ..."; null when the actor may
 */
export async function forbidden(
  reader: EngineReader,
  engine: Engine,
  actor: Actor,
  effect: Effect,
  owners: Owners,
): Promise<string | null> {
  const missing = lacking(actor, effect, owners)
  if (missing !== null) return isMissing(missing, actor, effect)
  const policy = policyOf(effect.step)
  const change = toChange(engine, actor, effect)
  const question = change === undefined ? null : policy?.asks(change)
  if (policy === undefined || change === undefined || question === null || question === undefined) return null
  const own = actor.pk === null ? [] : [actor.pk]
  const facts = await askRights(reader, { ...question, users: [...(question.users ?? []), ...own] })
  const { errors, step } = effect
  const reporter: Reporter = {
    report: (at, code, message) => errors.add([...step.path, ...at], code, message),
    instead: (at, code, message) => errors.instead([...step.path, ...at], code, message),
  }
  for (const denial of policy.denials(change, holdingsOf(actor, facts), reporter)) if (denial !== null) return denial
  return null
}

const policyOf = ({ model }: Step): Policy | undefined => policies[model.name]

/** @param actor it may have the permission for rows of some owners only */
function isMissing(permission: Permission, actor?: Actor, effect?: Pick<Effect, 'step' | 'row'>): string {
  const owners = actor === undefined ? [] : ownersFor(actor, permission)
  if (owners.length === 0) return `the permission ${permission} is missing`
  const only = `the permission ${permission} holds for rows of ${ownersText(owners)} only`
  if (effect?.row !== undefined) return only
  return effect?.step.owner === undefined
    ? `${only}: send one of them as Gatewright-Owner`
    : `${only}: name one of them as its owner`
}

/** The most owners that are listed. */
const maxOwners = 20

/** `owner "team-one"`, or several. */
export function ownersText(owners: readonly string[]): string {
  const listed = owners.slice(0, maxOwners).map((each) => JSON.stringify(each))
  const more = owners.length - listed.length
  return `owner${owners.length === 1 ? '' : 's'} ${listed.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function toChange(engine: Engine, actor: Actor, effect: Effect): RightsChange | undefined {
  const { step, row, values, sent } = effect
  const assumed = effect.isHidden ? unseenFields(step, sent) : []
  const action = effect.action === 'unchanged' && assumed.length > 0 ? 'update' : effect.action
  if (action === 'unchanged' || action === 'leave') return undefined
  const before = row === undefined ? undefined : toValues(step.model, row, engine.keyring)
  return {
    action,
    before,
    after: action === 'delete' ? {} : values,
    pk: row?.pk,
    caller: {
      self: selfOf(actor, actor.ceiling === undefined || actor.renews === true),
      isSuperuser: isSuperuser(actor),
      renews: actor.renews === true,
      stacks: stacksOf(actor),
      ofJob: actor.pipeline === undefined ? null : (actor.impersonator ?? actor),
    },
    tokenMaxDays: engine.tokenMaxDays,
    assumed,
  }
}

function holdingsOf(actor: Actor, facts: RightsFacts): Holdings {
  const all = isSuperuser(actor)
  // The actor was read at login or authentication: the rights may have been revoked since then.
  const current = facts.user(actor.pk)
  const now = new Set(current.permissions)
  const holds = (right: Right): boolean =>
    [actor, actor.impersonator ?? actor].every((each) => each.isSuperuser || covers(each.permissions, right)) &&
    (actor.isSuperuser || current.superuser || covers(now, right))
  const holdsAll = ({ superuser, permissions }: Rights, who: string): Denial => {
    if (all) return null
    if (superuser) return `${who} has superuser rights, and the caller has not`
    // They are sorted, so that the message is the same each time.
    const [more] = permissions.filter((permission) => !holds(permission)).sort()
    return more === undefined ? null : `${who} has the permission ${rightName(more)}, and the caller has not`
  }
  return {
    facts,
    holdsAll,
    may: (permission) => (allows(actor, permission) ? null : isMissing(permission)),
    superuser: (what) => (all ? null : `only a superuser may ${what}`),
  }
}

/**
 * The user who is authenticated in full; null for a caller who impersonates, whose token has a ceiling, or who applies the
 * document of another user.
 *
 * @param isFull whether the token counts as one without a ceiling
 */
const selfOf = (actor: Actor, isFull = actor.ceiling === undefined): number | null =>
  actor.impersonator === undefined && isFull && !isOfOthers(actor) ? actor.pk : null

/** The creator of the rows that the actor writes. An actor who impersonates holds only the rights that both users hold. */
export function creatorOf(actor: Actor): Creator {
  const { superuser, permissions } = rightsHeldBy(actor)
  return {
    pk: (actor.impersonator ?? actor).pk,
    self: selfOf(actor),
    stacks: stacksOf(actor),
    permissions: superuser ? null : (actor.renews && actor.ceiling ? [...actor.ceiling] : permissions).sort(),
  }
}

/** The origin of the rows that the actor creates. @param owner their label
 * @param all permissions that there are */
export const originOf = (actor: Actor, owner: string | null, all: readonly string[]): Origin => ({
  creator: { ...creatorOf(actor), all },
  createdBy: actor.pk,
  owner,
})

/** Whether the actor may have the secrets of this user: the actor is the user, or holds all rights of the user. */
export async function holdsAllOf(reader: EngineReader, actor: Actor, user: number): Promise<boolean> {
  if (isSuperuser(actor) || selfOf(actor) === user) return true
  const facts = await askRights(reader, { users: [user, ...(actor.pk === null ? [] : [actor.pk])] })
  return holdingsOf(actor, facts).holdsAll(facts.user(user), 'that user') === null
}

/** Whether an entry may change rights, or a name by which they are given, by its text alone: it takes the rights lock. */
export function decidesRights(step: Step): boolean {
  const { decides = [], isNamed = false } = policyOf(step) ?? {}
  if (decides.length === 0) return false
  if (step.state === 'absent') return true
  const mayRename = isNamed && step.state === 'present' && (step.attrs.has('name') || step.was !== undefined)
  return mayRename || decides.some((name) => step.attrs.has(name) || step.identifiers.has(name))
}

/**
 * Whether a superuser can authenticate, before the entries are written. The database is read only for entries that could remove
 * the last one, and not for a superuser, who is one. All such tokens may have expired: then no change is the reason.
 */
export async function hasSuperuser(reader: EngineReader, actor: Actor, steps: readonly Step[]): Promise<boolean> {
  const { pk, isSuperuser } = actor.impersonator ?? actor
  // The token of a job is none by which a superuser authenticates later.
  if (isSuperuser && pk !== null && actor.pipeline === undefined) return true
  const mayTakeAway = steps.some((step) => {
    const takes = policyOf(step)?.takesAway ?? []
    return takes.length > 0 && (step.state === 'absent' || takes.some((name) => step.attrs.has(name)))
  })
  return !mayTakeAway || isSuperuserLeft(reader, [])
}

/**
 * Checks, after all entries are written, that a superuser is left who can authenticate. The database is read only when an entry
 * could have removed the last one.
 *
 * @param had whether there was one before
 * @returns an error for each such entry; none when a superuser is left
 */
export async function superuserErrors(
  reader: EngineReader,
  engine: Engine,
  actor: Actor,
  effects: readonly Effect[],
  had: boolean,
): Promise<ErrorList> {
  const errors = new ErrorList()
  const ended: string[] = []
  const paths = effects.flatMap((effect): FieldPath[] => {
    const { action, step, changed } = effect
    const { takesAway = [], ends } = policyOf(step) ?? {}
    if (action === 'delete') return takesAway.length > 0 ? [step.path] : []
    if (action !== 'update') return []
    const change = ends === undefined ? undefined : toChange(engine, actor, effect)
    if (change !== undefined && ends?.(change) === false) return []
    if (change !== undefined) ended.push(String(effect.row?.pk))
    return takesAway.filter((name) => changed.includes(name)).map((name) => [...step.path, name])
  })
  if (!had || paths.length === 0 || (await isSuperuserLeft(reader, ended))) return errors
  for (const path of paths)
    errors.add(
      path,
      'last_superuser',
      'Would leave no superuser who can authenticate: first give an active superuser another api token that has not expired.',
    )
  return errors
}
