import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { type Actor, allows } from '../permissions.ts'

/** Submissions that were refused before they were recorded as runs, as operators see them. */

/** The newest that are kept. */
export const refusalsKept = 1_000

const select = {
  ...{ pk: true, at: true, route: true, code: true, status: true },
  ...{ username: true, requestId: true, title: true, sentence: true },
} satisfies Prisma.RefusalSelect

export type Refused = Prisma.RefusalGetPayload<{ select: typeof select }>

/** Those that the caller sees, the newest first: all with `view_run`, else the caller's own. */
export const readRefusals = (db: Db, actor: Actor): Promise<Refused[]> =>
  db.refusal.findMany({
    where: allows(actor, 'view_run') ? {} : { userPk: actor.pk ?? 0 },
    orderBy: { pk: 'desc' },
    take: refusalsKept,
    select,
  })
