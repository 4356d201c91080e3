import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { type Actor, seesAllRuns } from '../permissions.ts'

/** Refused access and submissions, as operators see them. */

/** A submission before it was recorded as a run; another write, or a sensitive read; a login at the dashboard. */
export const refusalKinds = ['access', 'submission', 'login'] as const
export type RefusalKind = (typeof refusalKinds)[number]

/** Refusals of users, and those of callers without a valid token: neither displaces the other. */
export const refusalGroups = [{ userPk: { not: null } }, { userPk: null }] satisfies Prisma.RefusalWhereInput[]

/** The newest refusals of each group that are kept. */
export const refusalsKept = 1_000

/** The most refusals that are kept of each group, one process and one second: a flood is a sample. */
export const refusalsOfSecond = 100

export type Refusals = {
  /** The newest first. */
  readonly rows: readonly Prisma.RefusalModel[]
  /** The time before which refusals are no longer kept; null when none of them was requested. */
  readonly keptFrom: Date | null
  /** Whether some may be missing, because very many came within one second. */
  readonly isFlood: boolean
}

/** Whether the number of rows is the number of refusals. */
export const isCounted = ({ keptFrom, isFlood }: Refusals): boolean => keptFrom === null && !isFlood

/** @property before only those with a smaller key @property who a part of the user's name @property id of the request */
type RefusalFilter = {
  readonly since?: Date
  readonly before?: bigint | null
  readonly kind?: RefusalKind | null
  readonly who?: string | null
  readonly id?: string | null
}

/** Reads the refusals that the caller sees: all, or its own. Whether some are missing is judged of all of them. */
export async function readRefusals(
  db: Db,
  actor: Actor,
  { since, before = null, kind = null, who = null, id = null }: RefusalFilter = {},
): Promise<Refusals> {
  const seesAll = seesAllRuns(actor)
  const [all, ...oldest] = await Promise.all([
    db.refusal.findMany({
      where: {
        ...(!seesAll && { userPk: actor.pk ?? 0 }),
        ...(before !== null && { pk: { lt: before } }),
        ...(since !== undefined && { at: { gt: since } }),
      },
      orderBy: { pk: 'desc' },
      take: refusalsKept * refusalGroups.length,
    }),
    ...refusalGroups.slice(0, seesAll ? 2 : 1).map((group) => oldestOfFull(db, group)),
  ])
  const from = Math.max(...oldest.map((at) => at?.getTime() ?? 0))
  const keptFrom = from > (since?.getTime() ?? 0) ? new Date(from) : null
  const isOf = (user: string | null) => who === null || user?.toLowerCase().includes(who.toLowerCase()) === true
  const rows = all.filter(
    (each) => [null, each.kind].includes(kind) && [null, each.requestId].includes(id) && isOf(each.username),
  )
  return { rows, keptFrom, isFlood: all.some(isPartOfFlood) }
}

/** The oldest row of a group that may have dropped some; else null. */
async function oldestOfFull(db: Db, group: Prisma.RefusalWhereInput): Promise<Date | null> {
  const { _count: count, _min: oldest } = await db.refusal.aggregate({ where: group, _count: true, _min: { at: true } })
  return count < refusalsKept ? null : oldest.at
}

/** Whether a refusal is part of a flood. Rows of a process are written once a second, those of its last second together. */
function isPartOfFlood({ at }: Prisma.RefusalModel, index: number, all: Refusals['rows']): boolean {
  const other = all[index + refusalsOfSecond - 1]
  return other !== undefined && Math.abs(at.getTime() - other.at.getTime()) < 2_000
}
