import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { Refusal } from '../../src/apply/refusal.ts'
import { findRemovable, findToken, newToken, viewKey } from '../../src/apply/token-key.ts'
import { type Write, write } from '../../src/apply/write.ts'
import type { Entry } from '../../src/document/document.ts'
import { Problem } from '../../src/errors.ts'
import { userTypes } from '../../src/models/user.ts'
import type { Actor } from '../../src/permissions.ts'
import type { Bench } from '../apply/engine.ts'
import { everything, none, type Rights, type Seen } from './oracle.ts'
import { absent, groupEntry, roleEntry, tokenEntry, userEntry } from './people.ts'
import { type ObjectKind, objectKinds, writesOf } from './random-objects.ts'
import { labels, type Pick, treasures } from './random-world.ts'

/** Random calls on the rows as they are: most are about rights that some delegate holds, and some about what none does. */

export type Outcome = 'accepted' | 'refused' | { readonly key: string; readonly token: string }

type Context = { readonly there: Bench; readonly actor: Actor; readonly seen: Seen; readonly pick: Pick }

type Draw = ReturnType<typeof drawer>

function drawer({ seen, actor, pick }: Context) {
  const coin = () => pick([true, false])
  const some = <Item>(items: readonly Item[]) => items.filter(coin)
  const keys = (named: Seen['groups']) => [...named.values()].map(({ pk }) => pk)
  const pairs = (all: ReadonlySet<string>) => [...all].map((pair) => pair.split(' ') as [string, string])
  const oneOf = <Item>(items: readonly Item[], otherwise: Item) => (items.length === 0 ? otherwise : pick(items))
  /** What gives or has little more often than all: else most calls would be refused. */
  const mostlyLight = <Key>(all: readonly { pk: Key; rights: Rights }[], otherwise: Key) => {
    const light = all.filter(({ rights }) => rights.size < 3 && !rights.has(everything))
    return oneOf(pick([all, light, light]), { pk: otherwise, rights: none }).pk
  }
  const people = [...seen.users].map(([pk, { rights }]) => ({ pk, rights }))
  const [group, user] = [mostlyLight([...seen.groups.values()], randomUUID()), mostlyLight(people, 0)]
  const role = mostlyLight([...seen.roles.values()], randomUUID())
  const tokens = [...seen.tokens.values()]
  const others = tokens.filter((token) => token.user !== actor.pk)
  return {
    ...{ pick, coin, some, group, role, user, self: actor.pk ?? 0, groups: keys(seen.groups) },
    /** The caller's own come as often as those of all others together. */
    token: oneOf(coin() ? others : tokens.filter((token) => token.user === actor.pk), tokens[0]),
    users: pairs(seen.members).flatMap(([of, member]) => (of === group ? [Number(member)] : [])),
    roles: pairs(seen.links).flatMap(([of, each]) => (of === group ? [each] : [])),
    joined: pairs(seen.members).flatMap(([of, member]) => (Number(member) === user ? [of] : [])),
    permissions: [...seen.roles.values()].find(({ pk }) => pk === role)?.permissions ?? [],
    owners: some(labels).filter((label) => label !== null),
  }
}

const distinct = <Item>(items: readonly Item[]) => [...new Set(items)]
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

/** One entry of each kind. Those of one row may be sent as a request, too. */
const entries = {
  'group create': ({ pick, groups, user, role }: Draw) =>
    groupEntry(null, {
      parent: pick([null, null, ...groups]),
      ...pick([{}, {}, { users: [user] }, { roles: [role] }, { is_superuser: true }]),
    }),
  'group change': ({ pick, group }: Draw) =>
    groupEntry(group, pick([{ name: randomUUID() }, { attributes: { a: randomUUID() } }])),
  'group move': ({ pick, group, groups }: Draw) => groupEntry(group, { parent: pick([null, ...groups]) }),
  'group flag': ({ pick, group }: Draw) =>
    groupEntry(group, { is_superuser: pick([true, false]), ...pick([{}, {}, { parent: null }, { roles: [] }]) }),
  'group roles': ({ pick, some, group, groups, roles, role }: Draw) =>
    groupEntry(
      group,
      pick([
        ...[{ roles: some(roles) }, { roles: distinct([...roles, role]) }, { parent: null, roles: some(roles) }],
        ...[
          { name: randomUUID(), roles: [] },
          { parent: pick(groups), roles: [role] },
        ],
      ]),
    ),
  'group members': ({ pick, some, group, users, user }: Draw) =>
    groupEntry(
      group,
      pick([
        ...[{ users: some(users) }, { users: distinct([...users, user]) }, { users: [user] }],
        ...[
          { users: [], name: randomUUID() },
          { users: [user], is_superuser: true },
        ],
      ]),
    ),
  'group delete': ({ group }: Draw) => absent(groupEntry(group)),
  'user create': ({ pick, group }: Draw) => userEntry(null, pick([{}, { groups: [group] }])),
  'user change': ({ pick, user }: Draw) =>
    userEntry(
      user,
      pick<Record<string, unknown>>([
        ...[{ is_active: false }, { is_active: true }, { username: randomUUID() }],
        ...[{ attributes: { a: randomUUID() } }, { email: `${randomUUID()}@example.com` }],
        ...[{ name: randomUUID() }, { path: `users/${randomUUID()}` }, { type: pick(userTypes) }],
      ]),
    ),
  'user groups': ({ pick, some, user, joined, group }: Draw) =>
    userEntry(user, pick([{ groups: some(joined) }, { groups: distinct([...joined, group]) }, { groups: [group] }])),
  'user delete': ({ user }: Draw) => absent(userEntry(user)),
  'role create': ({ pick, owners }: Draw) =>
    roleEntry(null, { permissions: pick([[], [pick(treasures)], ['add_group']]), ...pick([{}, { owners }]) }),
  'role change': ({ pick, some, role, permissions, owners }: Draw) =>
    roleEntry(
      role,
      pick([
        ...[{ permissions: some(permissions) }, { permissions: distinct([...permissions, pick(treasures)]) }],
        ...[{ name: randomUUID() }, { permissions: [...permissions, 'assign_role'].slice(-1) }, { owners }],
      ]),
    ),
  'role delete': ({ role }: Draw) => absent(roleEntry(role)),
  'token of self': ({ pick, self, owners }: Draw) =>
    tokenEntry(null, { user: self, ...pick([{}, { owners }, { expires: inDays(1) }, { expiring: false }]) }),
  'token of another': ({ pick, user }: Draw) =>
    tokenEntry(null, {
      user,
      ...pick([{}, {}, { intent: 'app_password' }, { expiring: false }]),
    }),
  'token change': ({ pick, token, user }: Draw) =>
    tokenEntry(
      token?.pk ?? randomUUID(),
      pick<Record<string, unknown>>([
        ...[{ description: randomUUID() }, { identifier: randomUUID() }, { expires: inDays(2), expiring: true }],
        ...[{ expiring: false }, { user }, { intent: 'app_password' }],
      ]),
    ),
  'token delete': ({ token }: Draw) => absent(tokenEntry(token?.pk ?? randomUUID())),
} satisfies Record<string, (draw: Draw) => Partial<Entry>>

const documentKinds = Object.keys(entries) as (keyof typeof entries)[]

/** `objectKinds`: applications and providers; `document`: several entries; `key view`: the key of a new token. */
export const kinds = [...documentKinds, ...objectKinds, 'document', 'key view'] as const
export type Kind = (typeof kinds)[number]

/** Kinds that are tried more often: most of them are refused. Of `rare`, few remain that would change something. */
const often = [
  'key view',
  'token of another',
  'document',
  'submission',
  'group members',
  'group move',
  'group roles',
] as const
const rare = [
  'key view',
  'group members',
  'group delete',
  'group flag',
  'user groups',
  'user groups',
  'token change',
] as const
export const drawn: readonly Kind[] = [...kinds, ...often, ...often, ...rare]

/** Seldom refused: else hardly a document would be accepted. */
const easy = ['group create', 'user create', 'role create', 'token of self', 'token delete', 'group change'] as const

/** @property told what a call about applications and providers reports to the caller */
type Called = { readonly outcome: Outcome; readonly what: unknown; readonly told?: string }

export async function call(kind: Kind, context: Context): Promise<Called> {
  const draw = drawer(context)
  const { there, actor, seen, pick } = context
  const apply = async (sent: readonly Partial<Entry>[]) => ({
    outcome: await outcomeOf(() => there.apply(sent, actor)),
    what: sent,
  })
  switch (kind) {
    case 'key view': {
      const fresh = [...seen.tokens.values()].filter((token) => token.fresh).slice(-8)
      if (fresh.length === 0) return { outcome: 'refused', what: 'no token' }
      const { pk: token, identifier } = pick(fresh)
      const keys: string[] = []
      const view = async () => keys.push(await viewKey(there.db, there.engine, actor, identifier, 'r'))
      const outcome = await outcomeOf(view)
      const [key] = keys
      return { outcome: key === undefined ? outcome : { key, token }, what: identifier }
    }
    case 'document':
      return apply([entries[pick(easy)](draw), entries[pick([pick(easy), pick(documentKinds)])](drawer(context))])
    default: {
      if (isObjectKind(kind)) {
        const { entries: sent, conditions } = writesOf(kind, seen, actor, pick)
        const told: string[] = []
        await outcomeOf(() => there.check(sent, actor, conditions), told)
        const applied = async () => {
          const { logs, changes } = await there.apply(sent, actor, conditions)
          told.push(...logs, JSON.stringify(changes))
        }
        const outcome = await outcomeOf(applied, told)
        return { outcome, what: { sent, conditions }, told: told.join('\n') }
      }
      const entry = entries[kind](draw)
      const request = draw.coin() ? requestOf(entry) : undefined
      if (request === undefined) return apply([entry])
      return { outcome: await outcomeOf(() => send(there, actor, request, seen)), what: entry }
    }
  }
}

const isObjectKind = (kind: Kind): kind is ObjectKind => objectKinds.some((each) => each === kind)

/** Only groups and tokens have requests of their own. */
function requestOf({ model, identifiers = {}, attrs = {}, state }: Partial<Entry>): Write | undefined {
  const { pk, ...names } = identifiers
  const isToken = model === 'service_core.token'
  if (!isToken && model !== 'service_core.group') return undefined
  if (typeof pk !== 'string') return { model, mode: { create: true }, fields: { ...names, ...attrs }, requestId: 'r' }
  if (state !== 'absent') return { model, mode: { change: pk }, fields: attrs, requestId: 'r' }
  return isToken ? { model, mode: { remove: { pk } }, requestId: 'r' } : undefined
}

/** Sends as the routes do: a caller finds only tokens that it may change or delete. */
async function send({ db, engine }: Bench, caller: Actor, request: Write, { tokens }: Seen): Promise<unknown> {
  const { model, mode } = request
  const identifier = (pk: unknown) => tokens.get(String(pk))?.identifier ?? ''
  if (model === 'service_core.token' && 'change' in mode)
    await findToken(db, caller, identifier(mode.change), 'change_token')
  const { actor, ...fields } =
    'remove' in mode
      ? await findRemovable(db, caller, identifier(mode.remove.pk))
      : model === 'service_core.token' && 'create' in mode
        ? await newToken(db, caller, request.fields)
        : { actor: caller }
  return write(db, engine, actor, { ...request, ...fields }, async () => 'written')
}

const refusals = ['permission_denied', 'invalid', 'not_found', 'conflict', 'key_gone']

/** @param told collects what a refusal reports */
async function outcomeOf(sent: () => Promise<unknown>, told: string[] = []): Promise<'accepted' | 'refused'> {
  try {
    await sent()
    return 'accepted'
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof Problem)) throw error
    expect(refusals).toContain(error instanceof Refusal ? error.reason : error.code)
    told.push(error.message, ...(error instanceof Refusal ? error.logs : [JSON.stringify(error)]))
    return 'refused'
  }
}
