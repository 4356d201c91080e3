import { limitTime } from '../../time-limit.ts'

/**
 * One answer for many pages: callers of the same key share one read at the same time. A connection that is dead may never answer:
 * then the read counts as failed, and the next caller reads again.
 */

/** Longer than a page waits: an answer that is late for one page is kept for the next. */
const openAtMostMs = 10_000

const ended = <Args extends unknown[], Found>(ask: (...args: Args) => Promise<Found>, withinMs: number) => {
  return (...args: Args): Promise<Found> =>
    limitTime(ask(...args), withinMs, () => {
      throw new Error(`no answer within ${withinMs} ms`)
    })
}

type Pending<Found> = { readonly answer: Promise<Found>; next?: Promise<Found> }

/**
 * Each caller gets an answer of a read that began after it came: callers who come while one is pending share the next.
 *
 * @param ask is not called for a key while its last answer is pending
 */
export function together<Args extends unknown[], Found>(
  ask: (...args: Args) => Promise<Found>,
  withinMs = openAtMostMs,
): (key: string, ...args: Args) => Promise<Found> {
  const askOnce = ended(ask, withinMs)
  const pending = new Map<string, Pending<Found>>()
  function begin(key: string, args: Args): Promise<Found> {
    const answer = askOnce(...args)
    const entry: Pending<Found> = { answer }
    pending.set(key, entry)
    // The next read takes its place itself.
    const end = () => {
      if (entry.next === undefined) pending.delete(key)
    }
    answer.then(end, end)
    return answer
  }
  return (key, ...args) => {
    const entry = pending.get(key)
    if (entry === undefined) return begin(key, args)
    const again = () => begin(key, args)
    entry.next ??= entry.answer.then(again, again)
    return entry.next
  }
}

const mostKept = 200

/** Callers get the answer that is pending, or the last one, while it is not too old. An error is not kept. */
export function kept<Args extends unknown[], Found>(
  keepMs: (key: string) => number,
  ask: (...args: Args) => Promise<Found>,
  withinMs = openAtMostMs,
): (key: string, ...args: Args) => Promise<Found> {
  const askOnce = ended(ask, withinMs)
  const answers = new Map<string, { readonly answer: Promise<Found>; until: number }>()
  return (key, ...args) => {
    const there = answers.get(key)
    if (there !== undefined && performance.now() < there.until) return there.answer
    if (answers.size >= mostKept) answers.clear()
    const answer = askOnce(...args)
    // No second read begins while one is pending; the time counts from its answer on.
    const entry = { answer, until: Number.POSITIVE_INFINITY }
    answers.set(key, entry)
    answer.then(
      () => {
        entry.until = performance.now() + keepMs(key)
      },
      () => {
        entry.until = 0
      },
    )
    return answer
  }
}
