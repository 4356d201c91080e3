import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'

/** The limit of a caller who may write nothing: its documents do nothing, and would fill the ledger. */
const mostOfReader = { runs: 200, hours: 24 } as const

/** @throws {Problem} `too_many_requests` when this user has had as many within a day */
export async function refuseReader(db: Db, submitterPk: number): Promise<void> {
  const since = new Date(Date.now() - mostOfReader.hours * 3_600_000)
  const runs = await inTime(db.run.count({ where: { submitterPk, createdAt: { gt: since } } }))
  if (runs < mostOfReader.runs) return
  const detail = `A user without a permission to write has at most ${mostOfReader.runs} runs within ${mostOfReader.hours} hours.`
  throw new Problem('too_many_requests', detail, { retryAfterS: 3_600 })
}
