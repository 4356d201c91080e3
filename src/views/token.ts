import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { tokenIntents } from '../token-secret.ts'
import type { UidOf } from './uid.ts'
import { readUsers, type User, userView } from './user.ts'

/** A token, without its secret. */

export const token = z.object({
  pk: z.guid(),
  managed: z.string().nullable(),
  identifier: z.string().max(255),
  intent: z.enum(tokenIntents),
  user: z.int(),
  user_obj: userView.schema,
  description: z.string(),
  expires: z.iso.datetime().nullable(),
  expiring: z.boolean(),
})

export type Token = z.output<typeof token>

export const tokenSelect = {
  pk: true,
  managed: true,
  identifier: true,
  intent: true,
  userPk: true,
  description: true,
  expires: true,
  expiring: true,
} satisfies Prisma.TokenSelect

export const toToken = (row: Prisma.TokenGetPayload<{ select: typeof tokenSelect }>, user: User): Token => ({
  pk: row.pk,
  managed: row.managed,
  identifier: row.identifier,
  intent: row.intent,
  user: row.userPk,
  user_obj: user,
  description: row.description,
  expires: row.expires?.toISOString() ?? null,
  expiring: row.expiring,
})

export async function readToken(tx: Tx, pk: string, uidOf: UidOf): Promise<Token> {
  const row = await tx.token.findUniqueOrThrow({ where: { pk }, select: tokenSelect })
  const user = (await readUsers(tx, [row.userPk], uidOf)).get(row.userPk)
  if (user === undefined) throw new Error(`token ${pk} has no user`)
  return toToken(row, user)
}
