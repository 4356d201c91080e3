import { limitTime } from '../../time-limit.ts'

/** Longer than a page waits: an answer that is late for one page is kept for the next. */
const openAtMostMs = 10_000
const mostKept = 200

/** @property until the time until which it answers callers; `Infinity` while it is pending and will be kept */
type Read<Found> = { readonly answer: Promise<Found>; until: number; isPending: boolean; next?: Promise<Found> }

/**
 * One answer for many pages: callers of the same key share one read at the same time. Each gets an answer that is not older than
 * `keepMs`; with 0, one of a read that began after it came, which it shares with all who come while the former one is pending. An
 * error is not kept. A connection that is dead may never answer: then the read counts as failed, and the next caller reads again.
 */
export function shared<Args extends unknown[], Found>(
  keepMs: number,
  ask: (...args: Args) => Promise<Found>,
  withinMs = openAtMostMs,
): (key: string, ...args: Args) => Promise<Found> {
  const reads = new Map<string, Read<Found>>()
  function begin(key: string, args: Args): Promise<Found> {
    if (reads.size >= mostKept) reads.clear()
    const answer = limitTime(ask(...args), withinMs, () => {
      throw new Error(`no answer within ${withinMs} ms`)
    })
    const read: Read<Found> = { answer, until: keepMs > 0 ? Number.POSITIVE_INFINITY : 0, isPending: true }
    reads.set(key, read)
    const end = (until: number) => Object.assign(read, { until, isPending: false })
    answer.then(
      () => end(performance.now() + keepMs),
      () => end(0),
    )
    return answer
  }
  return (key, ...args) => {
    const read = reads.get(key)
    if (read !== undefined && performance.now() < read.until) return read.answer
    if (read === undefined || !read.isPending) return begin(key, args)
    const again = () => begin(key, args)
    read.next ??= read.answer.then(again, again)
    return read.next
  }
}
