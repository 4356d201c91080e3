import { limitTime } from '../time-limit.ts'

/** A readiness request runs several at once and must end within a second. */
const quickMs = 700
/** The time after which a pending question is asked again: its connection may be dead. */
const openAtMostMs = 5_000

/**
 * Asks a part that may hang. Callers join a question that is already pending. Anyone may send probes, and still a part
 * that is away gets at most one question in five seconds.
 *
 * @param answerWithinMs the time that a caller waits
 * @throws the errors of `ask`, or one when no answer came in time
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

/** This time is shorter than `quickMs`: a part that is asked beside it must not seem to be away. */
const seldomMs = 400

/**
 * Asks a question that costs more, at most once in `everyMs`. Callers in between get the last answer. So do callers whose answer
 * is late, for ten times `everyMs`: a busy part is not one that refuses.
 *
 * @param answerWithinMs the time that a caller waits
 * @throws the errors of `ask`, or one when no answer came in time and the last one is too old
 */
export function seldom<Answer>(
  ask: () => Promise<Answer>,
  everyMs: number,
  answerWithinMs = seldomMs,
): () => Promise<Answer> {
  let asked: { answer: Promise<Answer>; since: number } | undefined
  let last: { answer: Answer; at: number } | undefined

  function begin(): Promise<Answer> {
    const started = { answer: ask(), since: performance.now() }
    asked = started
    started.answer.then(
      (answer) => {
        last = { answer, at: performance.now() }
      },
      () => {
        if (asked === started) asked = undefined
      },
    )
    return started.answer
  }

  return () => {
    const isRecent = asked !== undefined && performance.now() - asked.since < everyMs
    return limitTime(isRecent && asked !== undefined ? asked.answer : begin(), answerWithinMs, () => {
      if (last === undefined || performance.now() - last.at > 10 * everyMs)
        throw new Error(`no answer within ${answerWithinMs} ms`)
      return last.answer
    })
  }
}
