import { z } from 'zod'
import type { Db } from '../../src/db/client.ts'
import { rows, sql } from '../support/sql.ts'

/**
 * Judges what a call did, from the tables before and after it. It shares no code with the product, reads none of the
 * tables that the product computes, and walks the tree of groups itself.
 */

export type Rights = ReadonlySet<string>
export const none: Rights = new Set()
/** One of the rights of a superuser. */
export const everything = 'everything'

/** What a role gives: permissions for applications and providers hold for rows of its owners only. */
export const boundTo = (permissions: readonly string[], owners: readonly string[]): string[] =>
  permissions.flatMap((each) =>
    owners.length > 0 && /^((view|add|change|delete)_(application|\w+provider)|read_\w+provider_secrets)$/.test(each)
      ? owners.map((owner) => `${each}@${owner}`)
      : [each],
  )

const ofAll = (right: string) => right.replace(/@.*/, '')

/** Whether a right is among these, for one owner or for all. */
export const has = (rights: Rights, right: string): boolean => rights.has(right) || rights.has(ofAll(right))

/** Leaves out the rights for one owner that are there for all. */
export const plain = (rights: Rights): Rights =>
  new Set([...rights].filter((right) => ofAll(right) === right || !rights.has(ofAll(right))))

export type SeenToken = {
  readonly pk: string
  readonly identifier: string
  readonly user: number
  readonly intent: string
  readonly ceiling: Rights | null
  readonly expiring: boolean
  /** Whether it has not expired. */
  readonly lasts: boolean
  /** When it ends, in seconds. */
  readonly ends: number
  /** Whether its key can be viewed still. */
  readonly fresh: boolean
  /** A digest of its fields. */
  readonly digest: string
  /** What a request with it may do. */
  readonly carries: Rights
}

type SeenUser = {
  readonly active: boolean
  readonly username: string
  readonly digest: string
  readonly groups: Rights
  readonly rights: Rights
}
type Named = {
  readonly pk: string
  readonly rights: Rights
  readonly flag: boolean
  readonly digest: string
  /** The permissions of a role, as it has them. */
  readonly permissions: readonly string[]
}

export type SeenObject = {
  readonly key: string
  readonly resource: string
  readonly owner: string | null
  readonly name: string
  /** Leaves out what an application claims. */
  readonly digest: string
  /** The keys of the providers that an application has. */
  readonly claims: readonly string[]
  /** The stack that has it. */
  readonly stack: string | null
}

export type Seen = {
  /** All that was read: equal texts for equal tables. */
  readonly text: string
  readonly users: ReadonlyMap<number, SeenUser>
  /** What a group gives to its members, by the name by which documents know it. */
  readonly groups: ReadonlyMap<string, Named>
  readonly roles: ReadonlyMap<string, Named>
  /** `<group> <role>` */
  readonly links: Rights
  /** `<group> <user>` */
  readonly members: Rights
  readonly tokens: ReadonlyMap<string, SeenToken>
  /** Superusers who can authenticate. */
  readonly superusers: Rights
  /** Applications and providers, by resource and key. */
  readonly objects: ReadonlyMap<string, SeenObject>
}

const tables = z.object({
  groups: z.array(
    z.object({
      ...{ pk: z.string(), name: z.string(), parent: z.string().nullable(), flag: z.boolean(), digest: z.string() },
    }),
  ),
  roles: z.array(
    z.object({ pk: z.string(), name: z.string(), permissions: z.array(z.string()), owners: z.array(z.string()) }),
  ),
  links: z.array(z.object({ group: z.string(), role: z.string() })),
  members: z.array(z.object({ group: z.string(), user: z.int() })),
  users: z.array(z.object({ pk: z.int(), username: z.string(), active: z.boolean(), digest: z.string() })),
  tokens: z.array(
    z.object({
      ...{ pk: z.string(), identifier: z.string(), user: z.int(), intent: z.string() },
      ...{
        ceiling: z.array(z.string()).nullable(),
        expiring: z.boolean(),
        lasts: z.boolean(),
        ends: z.number().nullable(),
        fresh: z.boolean(),
        digest: z.string(),
      },
    }),
  ),
  objects: z.array(
    z.object({
      ...{ key: z.string(), resource: z.string(), owner: z.string().nullable(), name: z.string() },
      ...{ digest: z.string(), claims: z.array(z.string()), stack: z.string().nullable() },
    }),
  ),
})

const read = sql`SELECT jsonb_build_object(
  'groups', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'name', name, 'parent', parent,
    'flag', is_superuser, 'digest', md5(attributes::text))), '[]') FROM groups),
  'roles', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'name', name, 'permissions', permissions,
    'owners', owners)), '[]') FROM roles),
  'links', (SELECT coalesce(jsonb_agg(jsonb_build_object('group', group_pk, 'role', role_pk)), '[]') FROM group_roles),
  'members', (SELECT coalesce(jsonb_agg(jsonb_build_object('group', group_pk, 'user', user_pk)), '[]') FROM memberships),
  'users', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'username', username, 'active', is_active,
    'digest', md5(jsonb_build_array(username, name, email, is_active, attributes, path, type)::text))), '[]') FROM users),
  'tokens', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'identifier', identifier, 'user', user_pk,
    'intent', intent, 'ceiling', ceiling, 'expiring', expiring, 'lasts', NOT expiring OR expires > now(),
    'ends', CASE WHEN expiring THEN extract(epoch FROM expires) END,
    'fresh', sealed_key IS NOT NULL,
    'digest', md5(jsonb_build_array(identifier, description, expires, expiring, managed, user_pk, intent,
      encode(key_hash, 'hex'))::text))), '[]') FROM tokens),
  'objects', (SELECT coalesce(jsonb_agg(jsonb_build_object('key', o.key, 'resource', o.resource, 'owner', o.owner, 'name', o.row->>'name',
      'digest', md5((o.row - 'provider_pk')::text), 'claims', ARRAY(SELECT b.provider_pk::text FROM backchannel_providers b
        WHERE b.application_pk::text = o.key UNION SELECT o.row->>'provider_pk' WHERE o.row->>'provider_pk' IS NOT NULL),
      'stack', (SELECT m.stack FROM stack_members m WHERE m.key = o.key AND m.model LIKE '%.' || o.resource))), '[]')
    FROM (SELECT pk::text, 'application', owner, to_jsonb(a) FROM applications a
      UNION ALL SELECT pk::text, kind || 'provider', owner, to_jsonb(p) FROM providers p) AS o(key, resource, owner, row))
  ) AS tables`

export async function look(db: Db): Promise<Seen> {
  const [found] = await rows<{ tables: unknown }>(db, read)
  const seen = tables.parse(found?.tables)
  const byKey = new Map(seen.groups.map((group) => [group.pk, group]))
  const permissions = new Map(seen.roles.map((role) => [role.pk, boundTo(role.permissions, role.owners)]))
  const direct = new Map<string, Set<string>>()
  for (const { group, role } of seen.links)
    for (const each of permissions.get(role) ?? []) direct.getOrInsertComputed(group, () => new Set()).add(each)
  const given = new Map<string, { rights: Set<string>; above: string[] }>()
  for (const { pk } of seen.groups) {
    const [rights, above] = [new Set<string>(), [] as string[]]
    for (let at = byKey.get(pk); at !== undefined && !above.includes(at.pk); at = byKey.get(at.parent ?? '')) {
      above.push(at.pk)
      for (const each of direct.get(at.pk) ?? none) rights.add(each)
      if (at.flag) rights.add(everything)
    }
    given.set(pk, { rights, above })
  }
  const joined = Map.groupBy(seen.members, ({ user }) => user)
  const users = new Map(
    seen.users.map(({ pk, username, active, digest }): [number, SeenUser] => {
      const own = (joined.get(pk) ?? []).flatMap(({ group }) => given.get(group) ?? [])
      const rights = new Set(active ? own.flatMap((each) => [...each.rights]) : [])
      return [pk, { active, username, digest, rights, groups: new Set(own.flatMap(({ above }) => above)) }]
    }),
  )
  const tokens = new Map(
    seen.tokens.map((token): [string, SeenToken] => {
      const ceiling = token.ceiling === null ? null : new Set(token.ceiling)
      const opens = token.intent === 'api' && token.lasts
      const carries = opens ? limited(users.get(token.user)?.rights ?? none, ceiling) : none
      return [token.pk, { ...token, ceiling, carries, ends: token.ends ?? Number.POSITIVE_INFINITY }]
    }),
  )
  const leading = [...tokens.values()].filter(({ ceiling, carries }) => ceiling === null && carries.has(everything))
  return {
    ...{ users, tokens, text: JSON.stringify(found?.tables) },
    groups: new Map(
      seen.groups.map(({ pk, name, flag, digest }) => [
        name,
        { pk, flag, digest, rights: given.get(pk)?.rights ?? none, permissions: [] },
      ]),
    ),
    roles: new Map(
      seen.roles.map((role) => [
        role.name,
        {
          pk: role.pk,
          flag: false,
          digest: '',
          rights: new Set(permissions.get(role.pk)),
          permissions: role.permissions,
        },
      ]),
    ),
    links: new Set(seen.links.map(({ group, role }) => `${group} ${role}`)),
    members: new Set(seen.members.map(({ group, user }) => `${group} ${user}`)),
    superusers: new Set(leading.map(({ user }) => String(user))),
    objects: new Map(seen.objects.map((object) => [`${object.resource} ${object.key}`, object])),
  }
}

/** What is left of rights below a ceiling, or of one user's when another acts as that user. */
export function limited(rights: Rights, ceiling: Rights | null): Rights {
  if (ceiling === null || ceiling.has(everything)) return rights
  if (rights.has(everything)) return ceiling
  const [both, same] = [
    [...rights].filter((each) => has(ceiling, each)),
    [...ceiling].filter((each) => has(rights, each)),
  ]
  return new Set([...both, ...same])
}

/** The token with which a call is sent, and as whom. */
export type Sender = { readonly token: string; readonly as: number | undefined }

export type Caller = {
  /** The effective user. */
  readonly user: number
  /** The user who is authenticated in full: null while impersonating, and with a ceiling. */
  readonly self: number | null
  readonly isImpersonating: boolean
  readonly real: Rights
  readonly acting: Rights
  /** What both hold: what the caller may delegate. */
  readonly held: Rights
  /** The token of the call, when it has a ceiling and no user is impersonated. */
  readonly limited?: SeenToken
}

/** Whether a token gives its holder nothing that the caller's own does not: the caller may make, view and delete it. */
export const isNoMore = ({ limited }: Caller, { user, intent, ceiling, ends }: SeenToken): boolean =>
  limited !== undefined &&
  user === limited.user &&
  intent === 'api' &&
  ceiling !== null &&
  [...ceiling].every((right) => has(limited.ceiling ?? none, right)) &&
  ends <= limited.ends

/** @returns null when the call may not be authenticated, or not as that user */
export function callerOf({ tokens, users }: Seen, { token, as }: Sender): Caller | null {
  const found = tokens.get(token)
  if (found === undefined || found.intent !== 'api' || !found.lasts || !users.get(found.user)?.active) return null
  const { user, ceiling, carries: real } = found
  if (as === undefined) {
    const itself = { user, isImpersonating: false, real, acting: real, held: real }
    return ceiling === null ? { ...itself, self: user } : { ...itself, self: null, limited: found }
  }
  const other = users.get(as)
  const isSuperuser = real.has(everything)
  if (other?.active !== true || !(isSuperuser || real.has('impersonate'))) return null
  if (other.rights.has(everything) && !isSuperuser) return null
  const acting = limited(other.rights, ceiling)
  return { user: as, self: null, isImpersonating: true, real, acting, held: limited(acting, real) }
}
