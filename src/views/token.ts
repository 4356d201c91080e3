import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { isOfStack, ownerOf, stacksOf } from '../permissions.ts'
import { tokenIntents } from '../token-secret.ts'
import { readUsers, shownBeside, userView } from './user.ts'
import { inOrder, type Reading, type View } from './view.ts'

/** A token, without its secret. Its writes answer `token`, which the contract has. */

export const token = z
  .object({
    pk: withExample(z.guid(), '01a1fd66-1f20-7c11-8a30-5b6f3f2d9c01'),
    managed: withExample(z.string().nullable(), null),
    identifier: withExample(z.string().max(255), 'ada-pipeline'),
    intent: z.enum(tokenIntents).meta({ title: 'TokenIntent', examples: ['api'] }),
    user: userView.schema.shape.pk,
    user_obj: userView.schema.describe(shownBeside),
    description: withExample(z.string(), 'Deploys from the pipeline'),
    expires: z.iso.datetime().nullable(),
    expiring: z.boolean(),
  })
  .meta({ id: 'Token' })

export type Token = z.output<typeof token>

export const boundTo = withExample(
  z.object({ owners: z.array(z.string()), stacks: z.array(z.string()) }),
  { owners: [], stacks: ['corp/identity'] },
  'The owners to which permissions of it are bound, and the stacks by whose documents alone it writes: its own, or those of the token that made it.',
)

/** A token as its reads show it. */
const shown = token.extend({ bound_to: boundTo }).meta({ id: 'ReadToken' })

export type ReadToken = z.output<typeof shown>

const select = {
  pk: true,
  managed: true,
  identifier: true,
  intent: true,
  userPk: true,
  description: true,
  expires: true,
  expiring: true,
  ceiling: true,
} satisfies Prisma.TokenSelect

/** Reads each user once: a page shows the same ones again and again. */
async function* read(tx: Tx, keys: readonly string[], reading: Pick<Reading, 'uidOf' | 'actor'>) {
  const rows = await tx.token.findMany({ where: { pk: { in: [...keys] } }, select })
  const tokens = inOrder(keys, rows, ({ pk }) => pk)
  const owners = tokens.map(({ userPk }) => userPk)
  const users = await readUsers(tx, owners, reading)
  yield tokens.flatMap(({ userPk, expires, ceiling, ...row }) => {
    const user = users.get(userPk)
    if (user === undefined) return []
    const shown = { user: userPk, user_obj: user, expires: expires?.toISOString() ?? null }
    return { ...row, ...shown, bound_to: bondsOf(ceiling) }
  })
}

export function bondsOf(ceiling: unknown): ReadToken['bound_to'] {
  const rights = Array.isArray(ceiling) ? ceiling.map(String) : []
  const owners = rights.filter((right) => !isOfStack(right)).flatMap((right) => ownerOf(right) ?? [])
  return { owners: [...new Set(owners)].sort(), stacks: [...(stacksOf({ ceiling: new Set(rights) }) ?? [])].sort() }
}

export const tokenView = { model: 'Token', schema: shown, read } satisfies View<'Token'>

export async function readToken(tx: Tx, pk: string, reading: Pick<Reading, 'uidOf' | 'actor'>): Promise<ReadToken> {
  const [found] = (await Array.fromAsync(read(tx, [pk], reading))).flat()
  if (found === undefined) throw new Error(`there is no token ${pk}`)
  return found
}
