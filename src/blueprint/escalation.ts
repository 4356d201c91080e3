import type { Queryable, Tx } from '../db/client.ts'
import { Faults, type FieldPath } from '../errors.ts'
import { type Actor, allows, type Permission } from '../permissions.ts'
import type { Step } from './compile.ts'
import { type Judge, type Obstacle, type Rule, rules, type Tell, type Turn } from './escalation-rules.ts'
import { type Engine, type Finding, lacking } from './inspect.ts'
import { askRights, isSuperuserLeft, type Rights, type RightsFacts } from './rights.ts'
import { unpack } from './rows.ts'

/**
 * The one place that says who may do what an entry turns out to do: POST, PATCH and blueprints all pass through it,
 * before queueing and again inside the transaction. Who may not is told why; what the submitter can mend is a fault.
 *
 * What it holds to (decisions.md 3): nobody hands on what he does not hold. Rights flow from roles and flags to groups,
 * down to the groups below, to members, and to tokens; whoever adds a link of that chain holds all that flows through
 * it. So nobody's rights grow by more than the caller's own, whatever is done in which order.
 *
 * @returns why the actor may not, for "You may not update group x: ..."; null when he may
 */
export async function forbidden(q: Queryable, engine: Engine, actor: Actor, finding: Finding): Promise<string | null> {
  const missing = lacking(actor, finding)
  if (missing !== null) return isMissing(missing)
  const rule = ruleOf(finding.step)
  const turn = turnOf(engine, actor, finding)
  const question = turn === undefined ? null : rule?.asks(turn)
  if (rule === undefined || turn === undefined || question === null || question === undefined) return null
  const own = actor.pk === null ? [] : [actor.pk]
  const facts = await askRights(q, { ...question, users: [...(question.users ?? []), ...own] })
  const { faults, step } = finding
  const tell: Tell = {
    report: (at, message) => faults.add([...step.path, ...at], message),
    instead: (at, message) => faults.instead([...step.path, ...at], message),
  }
  for (const obstacle of rule.obstacles(turn, judgeFor(actor, facts), tell)) if (obstacle !== null) return obstacle
  return null
}

const ruleOf = ({ model }: Step): Rule | undefined => rules[model.name]

const isMissing = (permission: Permission) => `the permission ${permission} is missing`

/** Who acts as another holds no more than both do: what he hands on stays when he no longer acts as him. */
const isSuperuser = ({ isSuperuser: itself, impersonator }: Actor): boolean =>
  itself && (impersonator === undefined || impersonator.isSuperuser)

function turnOf(engine: Engine, actor: Actor, finding: Finding): Turn | undefined {
  const { step, action, row, values } = finding
  if (action === 'unchanged' || action === 'leave') return undefined
  const before = row === undefined ? undefined : unpack(step.model, row, engine.keyring)
  return {
    action,
    before,
    after: action === 'delete' ? {} : values,
    pk: row?.pk,
    caller: { pk: actor.pk, isSuperuser: isSuperuser(actor), isImpersonating: actor.impersonator !== undefined },
    tokenMaxDays: engine.tokenMaxDays,
  }
}

function judgeFor(actor: Actor, facts: RightsFacts): Judge {
  const all = isSuperuser(actor)
  // What he held when he was let in may be taken from him by now.
  const now = new Set(facts.user(actor.pk).permissions)
  const holds = (permission: string): boolean =>
    [actor, actor.impersonator ?? actor].every((each) => each.isSuperuser || each.permissions.has(permission)) &&
    (actor.isSuperuser || now.has(permission))
  const within = ({ superuser, permissions }: Rights, who: string): Obstacle => {
    if (all) return null
    if (superuser) return `${who} has superuser rights, and the caller has not`
    // The same one each time.
    const [more] = permissions.filter((permission) => !holds(permission)).sort()
    return more === undefined ? null : `${who} has the permission ${more}, and the caller has not`
  }
  return {
    facts,
    within,
    may: (permission) => (allows(actor, permission) ? null : isMissing(permission)),
    superuser: (what) => (all ? null : `only a superuser may ${what}`),
  }
}

/**
 * Whether the actor may be let in as this user: he is it, or holds all that the user does. Somebody who acts as another
 * is not himself the other.
 */
export async function mayPassFor(q: Queryable, actor: Actor, user: number): Promise<boolean> {
  if (isSuperuser(actor) || (actor.pk === user && actor.impersonator === undefined)) return true
  const facts = await askRights(q, { users: [user, ...(actor.pk === null ? [] : [actor.pk])] })
  return judgeFor(actor, facts).within(facts.user(user), 'that user') === null
}

/** Whether an entry may decide about rights: then it waits for others that may. Its text alone says so. */
export function decidesRights(step: Step): boolean {
  const decides = ruleOf(step)?.decides ?? []
  if (decides.length === 0) return false
  return step.state === 'absent' || decides.some((name) => step.attrs.has(name) || step.identifiers.has(name))
}

/**
 * Looks, after all is written, whether a superuser is left: only what could have taken the last one away asks.
 *
 * @returns the fault of each entry that could have; none when all is well
 */
export async function superuserFaults(tx: Tx, findings: readonly Finding[]): Promise<Faults> {
  const faults = new Faults()
  const at = findings.flatMap((finding): FieldPath[] => {
    const { action, step, changed } = finding
    const takes = ruleOf(step)?.takesAway ?? []
    if (action === 'delete') return takes.length > 0 ? [step.path] : []
    if (action !== 'update') return []
    return takes.filter((name) => changed.includes(name)).map((name) => [...step.path, name])
  })
  if (at.length === 0 || (await isSuperuserLeft(tx))) return faults
  for (const path of at) faults.add(path, 'Would leave no active superuser.')
  return faults
}
