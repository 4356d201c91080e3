import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { type Actor, allows, ownersOfRuns } from '../permissions.ts'

/** Submissions that were refused before they were recorded as runs, as operators see them. */

/** The newest that are kept. */
export const refusalsKept = 1_000

/** Of one process and one second, no more are kept: a flood is a sample. */
export const refusalsOfSecond = 100

const select = {
  ...{ pk: true, at: true, route: true, code: true, status: true },
  ...{ username: true, requestId: true, title: true, sentence: true },
} satisfies Prisma.RefusalSelect

export type Refused = Prisma.RefusalGetPayload<{ select: typeof select }>

/**
 * Whether the caller sees the refusals of all users: with `view_run`, unless its rights are bound to owners. A refusal does
 * not say to which owner it belongs.
 */
export const seesAllRefusals = (actor: Actor): boolean => allows(actor, 'view_run') && ownersOfRuns(actor) === null

export type Refusals = {
  /** The newest first. */
  readonly rows: readonly Refused[]
  /** Those before this time are no longer kept; null when none of them was asked for. */
  readonly keptFrom: Date | null
  /** So many came within a second that some of them may not be kept. */
  readonly isFlood: boolean
}

/** Whether there were as many as there are rows, and no more. */
export const isCounted = ({ keptFrom, isFlood }: Refusals): boolean => keptFrom === null && !isFlood

type Asked = { readonly since?: Date; readonly before?: bigint | null }

/** Those that the caller sees: all, or its own. @param before only those with a smaller key */
export async function readRefusals(db: Db, actor: Actor, { since, before = null }: Asked = {}): Promise<Refusals> {
  const [rows, { _max: newest, _min: oldest }] = await Promise.all([
    db.refusal.findMany({
      where: {
        ...(!seesAllRefusals(actor) && { userPk: actor.pk ?? 0 }),
        ...(before !== null && { pk: { lt: before } }),
        ...(since !== undefined && { at: { gt: since } }),
      },
      orderBy: { pk: 'desc' },
      take: refusalsKept,
      select,
    }),
    db.refusal.aggregate({ _max: { pk: true }, _min: { at: true } }),
  ])
  const wasFull = (newest.pk ?? 0n) > BigInt(refusalsKept)
  const isAsked = oldest.at !== null && (since === undefined || oldest.at > since)
  return { rows, keptFrom: wasFull && isAsked ? oldest.at : null, isFlood: rows.some(isPartOfFlood) }
}

/** Rows of a process are written once a second, those of its last second together. */
function isPartOfFlood({ at }: Refused, index: number, all: readonly Refused[]): boolean {
  const other = all[index + refusalsOfSecond - 1]
  return other !== undefined && Math.abs(at.getTime() - other.at.getTime()) < 2_000
}
