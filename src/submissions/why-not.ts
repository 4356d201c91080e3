import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { probe } from '../http/probe.ts'
import type { Inspect } from '../http/readiness.ts'
import { readAtWork } from '../runs/at-work.ts'
import { readWaiting } from '../runs/queued.ts'
import { judgeParts, judgeWaiting, judgeWork, type Why, type WhyOf } from '../runs/why.ts'
import { limitTime } from '../time-limit.ts'

/** The judgement of `runs/why.ts` on this installation. It never fails: parts that are not known in time are left out. */

export type WhyNot = {
  /** @returns why nothing is applied; null when all parts are healthy */
  installation(): Promise<Why | null>
  /** It asks the installation once for all of them. */
  readonly runs: WhyOf
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
    runs: (ids, withinMs = whyWithinMs) => {
      const judge = async (): Promise<ReadonlyMap<string, Why>> => {
        if (ids.length === 0) return new Map()
        const ofRuns = Promise.all([inTime(readWaiting(db, ids)), inTime(readAtWork(db, ids))])
        const [stopped, found] = await Promise.all([recent().catch(() => null), ofRuns.catch(() => null)])
        if (found === null) return new Map(stopped === null ? [] : ids.map((id) => [id, stopped]))
        const [waiting, working] = found
        const judged = [
          ...waiting.map((each) => [each.id, judgeWaiting(each, stopped)] as const),
          ...working.map((each) => [each.id, judgeWork(each)] as const),
        ]
        return new Map(judged.flatMap(([id, why]) => (why === null ? [] : [[id, why]])))
      }
      const none = () => new Map<string, Why>()
      return limitTime(judge().catch(none), withinMs, none)
    },
  }
}
