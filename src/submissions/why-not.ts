import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { probe } from '../http/probe.ts'
import type { Inspect } from '../http/readiness.ts'
import { readAtWork } from '../runs/at-work.ts'
import { readWaiting } from '../runs/queued.ts'
import { judgeParts, judgeRun, type Why } from '../runs/why.ts'
import { limitTime } from '../time-limit.ts'

/** The judgement of `runs/why.ts` on this installation. It never fails: parts that are not known in time are left out. */

export type WhyNot = {
  /** @returns why nothing is applied; null when all parts are healthy */
  installation(): Promise<Why | null>
  /**
   * @param withinMs how long the judgement may take
   * @returns why this run is not applied yet; null while a worker works on it unhindered, and when it has ended
   */
  run(id: string, withinMs?: number): Promise<Why | null>
}

/** The longest time of a judgement, in milliseconds. */
export const whyWithinMs = 1_000

/** Milliseconds; a run that waits may be read often. */
const everyMs = 250

export function openWhyNot(db: Db, inspect: Pick<Inspect, 'applies'>): WhyNot {
  const installation = async () => judgeParts(await inspect.applies())
  const shared = probe(installation, { withinMs: whyWithinMs })
  const recent = probe(installation, { everyMs, withinMs: whyWithinMs })
  return {
    installation: () => shared().catch(() => null),
    run: (id, withinMs = whyWithinMs) => {
      const judge = async (): Promise<Why | null> => {
        const ofRun = Promise.all([inTime(readWaiting(db, id)), inTime(readAtWork(db, id))])
        const [stopped, found] = await Promise.all([recent().catch(() => null), ofRun.catch(() => null)])
        if (found === null) return stopped
        const [[waiting], [atWork]] = found
        return waiting === undefined ? null : judgeRun(waiting, atWork, stopped)
      }
      return limitTime(
        judge().catch(() => null),
        withinMs,
        () => null,
      )
    },
  }
}
