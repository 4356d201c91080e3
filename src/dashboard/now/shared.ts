import { limitTime } from '../../time-limit.ts'

/** Longer than a page waits: an answer that is late for one page is kept for the next. */
const openAtMostMs = 10_000
const mostKept = 200

/**
 * One answer for many pages: callers of the same key share a read that is pending, or that ended less than `keepMs` ago. An error
 * is not kept. A connection that is dead may never answer: then the read counts as failed, and the next caller reads again.
 */
export function shared<Args extends unknown[], Found>(
  keepMs: number,
  ask: (...args: Args) => Promise<Found>,
  withinMs = openAtMostMs,
): (key: string, ...args: Args) => Promise<Found> {
  const reads = new Map<string, { readonly answer: Promise<Found>; until: number }>()
  return (key, ...args) => {
    const last = reads.get(key)
    if (last !== undefined && performance.now() < last.until) return last.answer
    if (reads.size >= mostKept) reads.clear()
    const answer = limitTime(ask(...args), withinMs, () => {
      throw new Error(`no answer within ${withinMs} ms`)
    })
    const read = { answer, until: Number.POSITIVE_INFINITY }
    reads.set(key, read)
    const keepUntil = (at: number) => Object.assign(read, { until: at })
    answer.then(
      () => keepUntil(performance.now() + keepMs),
      () => keepUntil(0),
    )
    return answer
  }
}
