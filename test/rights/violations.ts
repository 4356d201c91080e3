import {
  type Caller,
  has,
  isNoMore,
  none,
  plain,
  type Rights,
  type Seen,
  type SeenObject,
  type SeenToken,
} from './oracle.ts'

/** Whether a caller may see the name of a row: with any permission for it. */
export const mayKnow = ({ resource, owner }: SeenObject, { acting }: Caller): boolean =>
  ['view', 'add', 'change', 'delete'].some((each) =>
    has(acting, `${each}_${resource}${owner === null ? '' : `@${owner}`}`),
  )

/** What two sets do not have in common. */
export const change = (one: Rights = none, other: Rights = none): string[] => [
  ...plain(one).symmetricDifference(plain(other)),
]

/** What an accepted call did that its caller, who is no superuser, may not do. @param viewed the token whose key the caller got */
export function violations(before: Seen, after: Seen, caller: Caller, viewed?: string): string[] {
  const found: string[] = []
  const lacks = (what: string, rights: Iterable<string>) => {
    const more = [...rights].filter((right) => !has(caller.held, right))
    if (more.length > 0) found.push(`${what}: ${more}`)
  }
  const may = (permission: string, what: string) => {
    if (!caller.acting.has(permission)) found.push(`${what} without ${permission}`)
  }
  const judge: Judge = { caller, lacks, may, report: (what) => void found.push(what) }
  judgeUsers(before, after, judge)
  judgeNames(before, after, judge)
  for (const pk of new Set([...before.tokens.keys(), ...after.tokens.keys()]))
    judgeToken(before, after, [before.tokens.get(pk), after.tokens.get(pk)], judge)
  if (viewed !== undefined) judgeView(before, after, viewed, judge)
  if (change(before.links, after.links).length > 0) may('assign_role', 'roles of groups changed')
  if (change(before.members, after.members).length > 0) may('add_user_to_group', 'members changed')
  if (change(before.superusers, after.superusers).length > 0) found.push('the superusers are others')
  judgeObjects(before, after, judge)
  return found
}

/** Applications and providers: the caller needs the permission for the owner that a row had, and for the one that it has. */
function judgeObjects(before: Seen, after: Seen, { caller, report }: Judge): void {
  const may = (permission: string, { owner }: SeenObject, what: string) => {
    if (!has(caller.acting, owner === null ? permission : `${permission}@${owner}`))
      report(`${what} without ${permission} for ${owner === null ? 'rows without an owner' : owner}`)
  }
  /** Those that are there before and after: what is deleted is no claim any more. */
  const claims = (seen: SeenObject, there: Seen) =>
    seen.claims.filter((key) => [...there.objects.values()].some((each) => each.key === key))
  for (const key of new Set([...before.objects.keys(), ...after.objects.keys()])) {
    const [was, is] = [before.objects.get(key), after.objects.get(key)]
    const sides = [was, is].filter((each) => each !== undefined)
    if (was?.digest !== is?.digest)
      for (const side of sides) may(`${action(was, is)}_${side.resource}`, side, `${key} was written`)
    if (is === undefined) continue
    const taken = new Set(is.claims).difference(new Set(was?.claims))
    const lost = was === undefined ? [] : claims(was, after).filter((each) => !is.claims.includes(each))
    if (was !== undefined && (taken.size > 0 || lost.length > 0)) may(`change_${is.resource}`, is, `${key} has others`)
    for (const provider of before.objects.values())
      if (taken.has(provider.key)) may(`change_${provider.resource}`, provider, `${provider.key} was taken`)
  }
}

type Judge = {
  readonly caller: Caller
  /** Reports rights that the caller does not hold. */
  lacks(what: string, rights: Iterable<string>): void
  /** Reports a permission that the effective user does not have. */
  may(permission: string, what: string): void
  report(what: string): void
}

const action = (was: unknown, is: unknown) => (was === undefined ? 'add' : is === undefined ? 'delete' : 'change')

function judgeUsers(before: Seen, after: Seen, { lacks, may }: Judge): void {
  for (const user of new Set([...before.users.keys(), ...after.users.keys()])) {
    const [was, is] = [before.users.get(user), after.users.get(user)]
    if (was === undefined || is === undefined) may(`${action(was, is)}_user`, `user ${user}`)
    if (was !== undefined && is !== undefined && was.username !== is.username)
      may('rename_user', `user ${user} was renamed`)
    lacks(`user ${user} gained or lost`, change(was?.rights, is?.rights))
    if (change(was?.groups, is?.groups).length > 0) lacks(`user ${user}, who has more, was moved`, was?.rights ?? none)
    if (was?.digest !== is?.digest) lacks(`user ${user}, who has more, was changed`, was?.rights ?? none)
  }
}

function judgeNames(before: Seen, after: Seen, { lacks, may }: Judge): void {
  for (const [what, had, has] of [
    ['group', before.groups, after.groups],
    ['role', before.roles, after.roles],
  ] as const) {
    const [old, now] = [had, has].map((each) => new Map([...each.values()].map((row) => [row.pk, row])))
    for (const pk of new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])) {
      const [was, is] = [old?.get(pk), now?.get(pk)]
      if (was === undefined || is === undefined) may(`${action(was, is)}_${what}`, `${what} ${pk}`)
      if (was?.flag !== true && is?.flag === true) may('enable_group_superuser', `${what} ${pk} was flagged`)
      if (was?.flag === true && is?.flag !== true) may('disable_group_superuser', `${what} ${pk} was unflagged`)
      if (was !== undefined && is !== undefined && was.digest !== is.digest)
        lacks(`${what} ${pk}, which gives more, has other attributes`, was.rights)
      if (what === 'role' && change(was?.rights, is?.rights).length > 0) {
        if (was !== undefined) may('assign_role', `permissions of role ${pk} changed`)
        lacks(`role ${pk} gained or lost`, change(was?.rights, is?.rights))
      }
    }
    for (const [name, { pk }] of what === 'group' ? has : [])
      if (old?.has(pk) && had.get(name)?.pk !== pk) may('rename_group', `group ${pk} was renamed`)
    for (const [name, { pk, rights }] of had)
      if (has.get(name)?.pk !== pk) lacks(`the ${what} ${name} lost its name`, rights)
  }
}

function judgeToken(
  before: Seen,
  after: Seen,
  [was, is]: readonly [SeenToken | undefined, SeenToken | undefined],
  { caller, lacks, may, report }: Judge,
): void {
  const token = was ?? is
  if (token === undefined) return
  const { user, identifier } = token
  // It went with its user.
  if (is === undefined && !after.users.has(user)) return
  if (was !== undefined && is !== undefined) {
    if (was.user !== is.user || was.intent !== is.intent) report(`token ${identifier} has another user or intent`)
    if (was.ceiling !== null && (is.ceiling === null || is.ceiling.difference(was.ceiling).size > 0))
      report(`the ceiling of token ${identifier} was raised`)
  }
  // Made or deleted, not changed.
  if ((was === undefined || is === undefined) && isNoMore(caller, token)) return
  if (is?.expiring === false && was?.expiring !== false) report(`token ${identifier} no longer expires`)
  if (was?.digest === is?.digest) return
  if (caller.self !== user) lacks(`the user of token ${identifier} has more`, before.users.get(user)?.rights ?? none)
  if (caller.user !== user) may(`${action(was, is)}_token`, `token ${identifier}`)
  if (caller.isImpersonating && !caller.real.has(`${action(was, is)}_token`))
    report(`token ${identifier} without ${action(was, is)}_token of the real user`)
  if (was === undefined && is !== undefined) judgeHolder(is, caller, lacks, report)
}

/** What is in the hands of another than its user carries no more than is held there. */
function judgeHolder(
  { identifier, user, ceiling, carries }: SeenToken,
  { self }: Caller,
  lacks: Judge['lacks'],
  report: Judge['report'],
): void {
  if (self === user) return
  if (ceiling === null) report(`token ${identifier} has no ceiling`)
  lacks(`the ceiling of token ${identifier} is higher`, ceiling ?? none)
  lacks(`token ${identifier} carries more`, carries)
}

function judgeView(before: Seen, after: Seen, pk: string, { caller, lacks, may, report }: Judge): void {
  const [was, is] = [before.tokens.get(pk), after.tokens.get(pk)]
  if (was === undefined || is === undefined) {
    report(`a key of the token ${pk}, which is not there`)
    return
  }
  if (!was.fresh || is.fresh) report(`the key of token ${was.identifier} can be viewed again`)
  if (isNoMore(caller, is)) return
  if (caller.self !== was.user)
    lacks(`the user of viewed token ${was.identifier} has more`, before.users.get(was.user)?.rights ?? none)
  if (caller.user !== was.user) may('view_token_key', `the key of token ${was.identifier}`)
  if (caller.isImpersonating && !caller.real.has('view_token_key'))
    report(`the key of token ${was.identifier} without view_token_key of the real user`)
  judgeHolder(is, caller, lacks, report)
}
