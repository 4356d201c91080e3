import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { Entry } from '../../src/blueprint/document.ts'
import { sql } from '../../src/db/sql.ts'
import { uuid7 } from '../../src/ids.ts'
import { actorOfUser } from '../../src/models/actor.ts'
import type { Actor } from '../../src/permissions.ts'
import { versions } from '../support/contents.ts'
import type { Bench } from './engine.ts'

/** People with rights of their own, made past the engine, and what they try. */
export type People = {
  role(permissions: readonly string[]): Promise<string>
  group(options?: {
    permissions?: readonly string[]
    superuser?: boolean
    parent?: string
    users?: readonly number[]
  }): Promise<string>
  /** A user who holds these permissions, or all, by a group of his own. */
  user(options?: { permissions?: readonly string[]; superuser?: boolean; active?: boolean }): Promise<Somebody>
  /** He may not, before queueing and in the transaction alike, for this reason; and nothing is written. */
  refused(actor: Actor, entry: Partial<Entry>, why: string): Promise<void>
  /** He may, before queueing and in the transaction alike. */
  allowed(actor: Actor, entry: Partial<Entry>): Promise<void>
  /** He may, were it not for this fault. */
  faulty(actor: Actor, entry: Partial<Entry>, member: string, message: string): Promise<void>
}

export type Somebody = Actor & { readonly pk: number; readonly own: string }

export function people(there: Bench): People {
  const { db } = there

  const role: People['role'] = async (permissions) => {
    const pk = uuid7()
    await db.query(sql`INSERT INTO roles (pk, name, permissions) VALUES (${pk}, ${pk}, ${[...permissions]})`)
    return pk
  }

  const group: People['group'] = async ({ permissions = [], superuser = false, parent = null, users = [] } = {}) => {
    const pk = uuid7()
    await db.query(
      sql`INSERT INTO groups (pk, name, is_superuser, parent) VALUES (${pk}, ${pk}, ${superuser}, ${parent}::uuid)`,
    )
    if (permissions.length > 0)
      await db.query(sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${pk}, ${await role(permissions)})`)
    await db.query(sql`INSERT INTO memberships (group_pk, user_pk) SELECT ${pk}, u FROM unnest(${[...users]}::int[]) u`)
    return pk
  }

  const user: People['user'] = async ({ permissions = [], superuser = false, active = true } = {}) => {
    const [made] = await db.query<{ pk: number }>(sql`
      INSERT INTO users (uuid, username, is_active) VALUES (${randomUUID()}, ${randomUUID()}, true) RETURNING pk`)
    const pk = made?.pk ?? expect.fail('no user')
    const own = await group({ permissions, superuser, users: [pk] })
    const actor = (await actorOfUser(db, { pk })) ?? expect.fail('no actor')
    if (!active) await db.query(sql`UPDATE users SET is_active = false WHERE pk = ${pk}`)
    return { ...actor, pk, own }
  }

  return {
    ...{ role, group, user },
    refused: async (actor, entry, why) => {
      const before = await versions(db)
      await expect(there.check([entry], actor)).rejects.toMatchObject({
        code: 'permission_denied',
        message: expect.stringContaining(why),
      })
      expect(await there.refusal([entry], actor)).toMatchObject({
        reason: 'permission_denied',
        logs: [expect.stringContaining(why)],
      })
      expect(await versions(db)).toEqual(before)
    },
    allowed: async (actor, entry) => {
      await there.check([entry], actor)
      expect((await there.apply([entry], actor)).changes).toHaveLength(1)
    },
    faulty: async (actor, entry, member, message) => {
      await expect(there.check([entry], actor)).rejects.toMatchObject({
        code: 'invalid',
        fields: { entries: { 0: { [member]: [message] } } },
      })
      expect((await there.refusal([entry], actor)).logs).toEqual([`rolled back: entries.0.${member}: ${message}`])
    },
  }
}

const entryOf =
  (model: string) =>
  (key: string | number | null, attrs: Record<string, unknown>): Partial<Entry> => ({
    model,
    identifiers: key === null ? {} : { pk: key },
    attrs,
  })

/** Entries by key; null: by the identifiers among the members, for a new row. */
export const groupEntry = (key: string | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_core.group', 'name', attrs) : entryOf('service_core.group')(key, attrs)
export const userEntry = (key: number | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_core.user', 'username', attrs) : entryOf('service_core.user')(key, attrs)
export const roleEntry = (key: string | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_rbac.role', 'name', attrs) : entryOf('service_rbac.role')(key, attrs)
export const tokenEntry = (key: string | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_core.token', 'identifier', attrs) : entryOf('service_core.token')(key, attrs)

const named = (model: string, member: string, attrs: Record<string, unknown>): Partial<Entry> => ({
  model,
  identifiers: { [member]: randomUUID() },
  attrs,
})

export const absent = (entry: Partial<Entry>): Partial<Entry> => ({ ...entry, state: 'absent' })
