import { limitTime } from '../time-limit.ts'

/** A readiness request runs several at once and must end within a second. */
const quickMs = 700
/** This time is shorter: a part that is asked beside a question that costs more must not seem to be away. */
const seldomMs = 400
/** The time after which a pending question is asked again: its connection may be dead. */
const openAtMostMs = 5_000

/**
 * Asks a part that may hang. Callers join a question that is already pending. Anyone may send probes, and still a part
 * that is away gets at most one question in five seconds.
 *
 * @property everyMs for a question that costs more: it is asked once in this time at most, and callers in between get the last
 *   answer. So do callers whose answer is late, for ten times as long: a busy part is not one that refuses
 * @property withinMs the time that a caller waits
 * @throws the errors of `ask`, or one when no answer came in time
 */
export function probe<Answer>(
  ask: () => Promise<Answer>,
  { everyMs = 0, withinMs = everyMs > 0 ? seldomMs : quickMs }: { everyMs?: number; withinMs?: number } = {},
): () => Promise<Answer> {
  let asked: { readonly answer: Promise<Answer>; readonly until: number } | undefined
  let last: { readonly answer: Answer; readonly until: number } | undefined

  function join(): Promise<Answer> {
    const from = performance.now()
    if (asked !== undefined && from < asked.until) return asked.answer
    const started = { answer: ask(), until: from + Math.max(openAtMostMs, everyMs) }
    asked = started
    const end = (until: number) => {
      if (asked === started) asked = { ...started, until }
    }
    started.answer.then(
      (answer) => {
        last = { answer, until: performance.now() + 10 * everyMs }
        end(from + everyMs)
      },
      () => end(0),
    )
    return started.answer
  }

  return () =>
    limitTime(join(), withinMs, () => {
      if (last === undefined || performance.now() >= last.until) throw new Error(`no answer within ${withinMs} ms`)
      return last.answer
    })
}
