import { randomBytes, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import type { Entry } from '../../src/document/document.ts'
import { uuid7 } from '../../src/ids.ts'
import type { Actor } from '../../src/permissions.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import type { TokenIntent } from '../../src/token-secret.ts'
import type { Bench } from '../apply/engine.ts'
import { versions } from '../support/contents.ts'
import { rows, sql } from '../support/sql.ts'

/** Users with given rights, inserted without the engine, and what they may do. */
export type People = {
  role(permissions: readonly string[]): Promise<string>
  group(options?: {
    permissions?: readonly string[]
    superuser?: boolean
    parent?: string
    users?: readonly number[]
  }): Promise<string>
  /** A user with these permissions, or a superuser with a token, through a group of the user's own. */
  user(options?: { permissions?: readonly string[]; superuser?: boolean; active?: boolean }): Promise<Person>
  /** A token, inserted without the engine. @returns its key */
  token(user: number, options?: { expires?: Date; intent?: TokenIntent; ceiling?: readonly string[] }): Promise<string>
  /** The check and the apply both deny the entry for this reason, and nothing is written. */
  refused(actor: Actor, entry: Partial<Entry>, why: string): Promise<void>
  /** The check and the apply both allow the entry. */
  allowed(actor: Actor, entry: Partial<Entry>): Promise<void>
  /** The check and the apply both report only this error. */
  invalid(actor: Actor, entry: Partial<Entry>, field: string, message: string): Promise<void>
}

export type Person = Actor & { readonly pk: number; readonly own: string }

export function people(there: Bench): People {
  const { db } = there

  const role: People['role'] = async (permissions) => {
    const pk = uuid7()
    await rows(db, sql`INSERT INTO roles (pk, name, permissions) VALUES (${pk}, ${pk}, ${[...permissions]})`)
    return pk
  }

  const group: People['group'] = async ({ permissions = [], superuser = false, parent = null, users = [] } = {}) => {
    const pk = uuid7()
    await rows(
      db,
      sql`INSERT INTO groups (pk, name, is_superuser, parent) VALUES (${pk}, ${pk}, ${superuser}, ${parent}::uuid)`,
    )
    if (permissions.length > 0)
      await rows(db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${pk}, ${await role(permissions)})`)
    await rows(db, sql`INSERT INTO memberships (group_pk, user_pk) SELECT ${pk}, u FROM unnest(${[...users]}::int[]) u`)
    return pk
  }

  const token: People['token'] = async (userPk, { expires, intent = 'api', ceiling } = {}) => {
    const pk = uuid7()
    const expiry = { expiring: expires !== undefined, expires: expires ?? null }
    const limit = ceiling === undefined ? {} : { ceiling: [...ceiling] }
    await db.token.create({
      data: { pk, identifier: pk, userPk, intent, ...expiry, ...limit, keyHash: randomBytes(32) },
      select: { pk: true },
    })
    return pk
  }

  const user: People['user'] = async ({ permissions = [], superuser = false, active = true } = {}) => {
    const [inserted] = await rows<{ pk: number }>(
      db,
      sql`
      INSERT INTO users (uuid, username, is_active) VALUES (${randomUUID()}, ${randomUUID()}, true) RETURNING pk`,
    )
    const pk = inserted?.pk ?? expect.fail('no user')
    const own = await group({ permissions, superuser, users: [pk] })
    if (superuser) await token(pk)
    const actor = (await actorOfUser(reader(db), { pk })) ?? expect.fail('no actor')
    if (!active) await rows(db, sql`UPDATE users SET is_active = false WHERE pk = ${pk}`)
    return { ...actor, pk, own }
  }

  return {
    role,
    group,
    user,
    token,
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
      expect((await there.apply([entry], actor)).audited).toHaveLength(1)
    },
    invalid: async (actor, entry, field, message) => {
      await expect(there.check([entry], actor)).rejects.toMatchObject({
        code: 'invalid',
        fields: { entries: { 0: { [field]: [message] } } },
      })
      expect((await there.refusal([entry], actor)).logs).toEqual([`rolled back: entries.0.${field}: ${message}`])
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

/** Entries by key; null gives a new row with a random name. */
export const groupEntry = (key: string | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_core.group', 'name', attrs) : entryOf('service_core.group')(key, attrs)
export const userEntry = (key: number | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_core.user', 'username', attrs) : entryOf('service_core.user')(key, attrs)
export const roleEntry = (key: string | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_rbac.role', 'name', attrs) : entryOf('service_rbac.role')(key, attrs)
export const tokenEntry = (key: string | null, attrs: Record<string, unknown> = {}): Partial<Entry> =>
  key === null ? named('service_core.token', 'identifier', attrs) : entryOf('service_core.token')(key, attrs)

const named = (model: string, field: string, attrs: Record<string, unknown>): Partial<Entry> => ({
  model,
  identifiers: { [field]: randomUUID() },
  attrs,
})

export const absent = (entry: Partial<Entry>): Partial<Entry> => ({ ...entry, state: 'absent' })
