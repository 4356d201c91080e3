import { limitTime } from '../time-limit.ts'

/** A readiness request runs several at once and must end within a second. */
const quickMs = 700
/** After this time a pending question is asked again: its connection may be dead. */
const openAtMostMs = 5_000

/**
 * Asks a part that may hang. Callers join a question that is already pending. Anyone may send probes, and still a part
 * that is away gets at most one question in five seconds.
 *
 * @param answerWithinMs how long a caller waits
 * @throws what `ask` throws, or an error when no answer came in time
 */
export function probe<Answer>(ask: () => Promise<Answer>, answerWithinMs = quickMs): () => Promise<Answer> {
  let open: { answer: Promise<Answer>; since: number } | undefined

  function join(): Promise<Answer> {
    if (open !== undefined && performance.now() - open.since < openAtMostMs) return open.answer
    const started = { answer: ask(), since: performance.now() }
    open = started
    const close = () => {
      if (open === started) open = undefined
    }
    started.answer.then(close, close)
    return started.answer
  }

  return () =>
    limitTime(join(), answerWithinMs, () => {
      throw new Error(`no answer within ${answerWithinMs} ms`)
    })
}

/**
 * Asks what costs more than a question, at most once in `everyMs`. Callers in between get the last answer; after a failure
 * the next one asks again.
 */
export function seldom<Answer>(ask: () => Promise<Answer>, everyMs: number): () => Promise<Answer> {
  let last: { answer: Promise<Answer>; since: number } | undefined
  return () => {
    if (last !== undefined && performance.now() - last.since < everyMs) return last.answer
    const asked = { answer: ask(), since: performance.now() }
    last = asked
    asked.answer.catch(() => {
      if (last === asked) last = undefined
    })
    return asked.answer
  }
}
