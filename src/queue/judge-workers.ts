import { firstCheckedFormat, runFormat } from '../runs/format.ts'
import type { SeenFormat } from './heartbeat.ts'

/** A little less than three intervals of the probe job (`probeEveryMs`). */
const consumedWithinS = 11

/** A worker that waits for migrations reports it every second. */
const waitingWithinS = 5

/** @property isBehind workers of an older version take jobs, and would not apply the runs of this API rightly */
export type Judgement = { readonly ok: boolean; readonly detail: string; readonly isBehind?: true }

/** A worker that starts at the same time as the API takes its first job within this time. */
export const workersStartWithinS = consumedWithinS

/**
 * Judges whether workers execute the runs that this API records, and which version to replace first when versions are mixed. The
 * result is not ok when runs are not applied, or may fail.
 */
export function judgeWorkers(seen: readonly SeenFormat[], own = runFormat): Judgement {
  const consuming = seen.filter(({ consumedS }) => consumedS !== null && consumedS <= consumedWithinS)
  const formats = consuming.map(({ format }) => format)
  const older = formats.filter((format) => format < own)
  const able = formats.filter((format) => format >= own)
  const waiting = seen.findLast(
    ({ format, waitingS }) => format > own && waitingS !== null && waitingS <= waitingWithinS,
  )
  if (waiting !== undefined) {
    const detail = `A worker of a newer version waits for the migrations of its version (format ${waiting.format}, this API records format ${own}): replace an API first.`
    return { ok: able.length > 0, detail: able.length > 0 ? `Workers take jobs. ${detail}` : detail }
  }
  if (older.length > 0) {
    const which = `of an older version (format ${older.join(', ')}, this API records format ${own}): replace the workers first.`
    if (able.length === 0) return { ok: false, detail: `Only workers take jobs that are ${which}`, isBehind: true }
    if (older.some((format) => format < firstCheckedFormat))
      return { ok: false, detail: `Beside the workers of this version there are some ${which}`, isBehind: true }
    return { ok: true, detail: `Workers take jobs. Some are ${which} Until then, some runs take seconds longer.` }
  }
  if (able.length > 0) return { ok: true, detail: 'A worker takes jobs.' }
  const sinceS = Math.min(...seen.flatMap(({ consumedS }) => consumedS ?? []))
  if (!Number.isFinite(sinceS)) return { ok: false, detail: 'No worker has ever taken a job: start one.' }
  return {
    ok: false,
    detail: `No worker has taken a job for ${Math.round(sinceS)} s, though each worker adds one every four seconds: it is stopped, stuck or cut off from the queue.`,
  }
}
