import { randomUUID } from 'node:crypto'
import type { Db } from '../../src/db/client.ts'
import { sha256, uuid7 } from '../../src/ids.ts'
import { newSecret, type TokenIntent } from '../../src/token-secret.ts'
import type { Asker } from './asker.ts'
import { testKeys } from './engine.ts'

/** Rows that tests start from, made past the API. */
export type Make = {
  /** A user with a token, who holds these permissions through their own group and role. */
  user(options?: {
    permissions?: string[]
    /** The owners of the role. */
    owners?: string[]
    superuser?: boolean
    isActive?: boolean
    groups?: string[]
  }): Promise<Made>
  role(permissions: string[], owners?: string[]): Promise<{ pk: string; name: string }>
  group(options?: {
    name?: string
    roles?: string[]
    superuser?: boolean
    parent?: string
    users?: number[]
  }): Promise<{ pk: string; name: string }>
  /** @returns the secret to send */
  token(
    userPk: number,
    options?: {
      identifier?: string
      intent?: TokenIntent
      expires?: Date
      managed?: string
      ceiling?: readonly string[]
    },
  ): Promise<string>
}

export type Made = Asker & {
  readonly pk: number
  readonly username: string
  readonly token: string
  readonly group: string
}

export function makers(db: Db, as: (token: string) => Asker): Make {
  const role: Make['role'] = (permissions, owners = []) =>
    db.role.create({ data: { pk: uuid7(), name: `role ${randomUUID()}`, permissions, owners } })

  const group: Make['group'] = ({
    name = `group ${randomUUID()}`,
    roles = [],
    superuser = false,
    parent,
    users = [],
  } = {}) =>
    db.group.create({
      data: {
        pk: uuid7(),
        name,
        isSuperuser: superuser,
        parentPk: parent ?? null,
        roles: { create: roles.map((rolePk) => ({ rolePk })) },
        memberships: { create: users.map((userPk) => ({ userPk })) },
      },
    })

  const token: Make['token'] = async (userPk, options = {}) => {
    const { identifier = randomUUID(), intent = 'api', expires, managed, ceiling } = options
    const secret = newSecret(intent, testKeys)
    const expiry = { expiring: expires !== undefined, expires: expires ?? null }
    await db.token.create({
      data: {
        pk: uuid7(),
        identifier,
        intent,
        userPk,
        keyHash: new Uint8Array(sha256(secret)),
        checksumKey: testKeys.ids[0],
        managed: managed ?? null,
        ...(ceiling && { ceiling: [...ceiling] }),
        ...expiry,
      },
    })
    return secret
  }

  const user: Make['user'] = async ({
    permissions = [],
    owners = [],
    superuser = false,
    isActive = true,
    groups = [],
  } = {}) => {
    const own = await group({ superuser, roles: [(await role(permissions, owners)).pk] })
    const username = `user-${randomUUID()}`
    const memberships = { create: [own.pk, ...groups].map((groupPk) => ({ groupPk })) }
    const { pk } = await db.user.create({ data: { uuid: randomUUID(), username, isActive, memberships } })
    const secret = await token(pk)
    return { ...as(secret), pk, username, token: secret, group: own.pk }
  }

  return { user, role, group, token }
}
