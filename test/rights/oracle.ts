import { z } from 'zod'
import type { Db } from '../../src/db/client.ts'
import { rows, sql } from '../support/sql.ts'

/**
 * Judges what a call did, from the tables before and after it. It shares no code with the product, reads none of the
 * tables that the product computes, and walks the tree of groups itself.
 */

export type Rights = ReadonlySet<string>
export const none: Rights = new Set()
/** Among the rights of a superuser. */
export const everything = 'everything'

export type SeenToken = {
  readonly pk: string
  readonly identifier: string
  readonly user: number
  readonly intent: string
  readonly ceiling: Rights | null
  readonly expiring: boolean
  /** Whether it has not expired. */
  readonly lasts: boolean
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
type Named = { readonly pk: string; readonly rights: Rights; readonly flag: boolean; readonly digest: string }

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
  /** Digests of applications and providers, by resource and key. */
  readonly objects: ReadonlyMap<string, { readonly resource: string; readonly digest: string }>
}

const tables = z.object({
  groups: z.array(
    z.object({
      ...{ pk: z.string(), name: z.string(), parent: z.string().nullable(), flag: z.boolean(), digest: z.string() },
    }),
  ),
  roles: z.array(z.object({ pk: z.string(), name: z.string(), permissions: z.array(z.string()) })),
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
        fresh: z.boolean(),
        digest: z.string(),
      },
    }),
  ),
  objects: z.array(z.object({ key: z.string(), resource: z.string(), digest: z.string() })),
})

const read = sql`SELECT jsonb_build_object(
  'groups', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'name', name, 'parent', parent,
    'flag', is_superuser, 'digest', md5(attributes::text))), '[]') FROM groups),
  'roles', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'name', name, 'permissions', permissions)), '[]')
    FROM roles),
  'links', (SELECT coalesce(jsonb_agg(jsonb_build_object('group', group_pk, 'role', role_pk)), '[]') FROM group_roles),
  'members', (SELECT coalesce(jsonb_agg(jsonb_build_object('group', group_pk, 'user', user_pk)), '[]') FROM memberships),
  'users', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'username', username, 'active', is_active,
    'digest', md5(jsonb_build_array(username, name, email, is_active, attributes, path, type)::text))), '[]') FROM users),
  'tokens', (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', pk, 'identifier', identifier, 'user', user_pk,
    'intent', intent, 'ceiling', ceiling, 'expiring', expiring, 'lasts', NOT expiring OR expires > now(),
    'fresh', sealed_key IS NOT NULL,
    'digest', md5(jsonb_build_array(identifier, description, expires, expiring, managed, user_pk, intent,
      encode(key_hash, 'hex'))::text))), '[]') FROM tokens),
  'objects', (SELECT coalesce(jsonb_agg(jsonb_build_object('key', o.key, 'resource', o.resource, 'digest', md5(o.row))), '[]')
    FROM (SELECT pk::text, 'application', to_jsonb(a)::text FROM applications a
      UNION ALL SELECT pk::text, kind || 'provider', to_jsonb(p)::text FROM providers p) AS o(key, resource, row))
  ) AS tables`

export async function look(db: Db): Promise<Seen> {
  const [found] = await rows<{ tables: unknown }>(db, read)
  const seen = tables.parse(found?.tables)
  const byKey = new Map(seen.groups.map((group) => [group.pk, group]))
  const permissions = new Map(seen.roles.map((role) => [role.pk, role.permissions]))
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
      return [token.pk, { ...token, ceiling, carries }]
    }),
  )
  const leading = [...tokens.values()].filter(({ ceiling, carries }) => ceiling === null && carries.has(everything))
  return {
    ...{ users, tokens, text: JSON.stringify(found?.tables) },
    groups: new Map(
      seen.groups.map(({ pk, name, flag, digest }) => [
        name,
        { pk, flag, digest, rights: given.get(pk)?.rights ?? none },
      ]),
    ),
    roles: new Map(
      seen.roles.map((role) => [
        role.name,
        { pk: role.pk, flag: false, digest: '', rights: new Set(role.permissions) },
      ]),
    ),
    links: new Set(seen.links.map(({ group, role }) => `${group} ${role}`)),
    members: new Set(seen.members.map(({ group, user }) => `${group} ${user}`)),
    superusers: new Set(leading.map(({ user }) => String(user))),
    objects: new Map(seen.objects.map(({ key, ...object }) => [`${object.resource} ${key}`, object])),
  }
}

/** What is left of rights below a ceiling, or of one user's when another acts as that user. */
export function limited(rights: Rights, ceiling: Rights | null): Rights {
  if (ceiling === null || ceiling.has(everything)) return rights
  return rights.has(everything) ? ceiling : rights.intersection(ceiling)
}

/** With which token, and as whom, a call is sent. */
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
}

/** @returns null when the call may not be authenticated, or not as that user */
export function callerOf({ tokens, users }: Seen, { token, as }: Sender): Caller | null {
  const found = tokens.get(token)
  if (found === undefined || found.intent !== 'api' || !found.lasts || !users.get(found.user)?.active) return null
  const { user, ceiling, carries: real } = found
  if (as === undefined)
    return { user, self: ceiling === null ? user : null, isImpersonating: false, real, acting: real, held: real }
  const other = users.get(as)
  const isSuperuser = real.has(everything)
  if (other?.active !== true || !(isSuperuser || real.has('impersonate'))) return null
  if (other.rights.has(everything) && !isSuperuser) return null
  const acting = limited(other.rights, ceiling)
  return { user: as, self: null, isImpersonating: true, real, acting, held: limited(acting, real) }
}
