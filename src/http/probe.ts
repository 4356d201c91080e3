/** Milliseconds: half a dozen of these at once still end within a second. */
const answerWithinMs = 700
/** A question that has been open for longer than this is asked anew: its connection may be dead without a sign. */
const openAtMostMs = 5_000

/**
 * A question about a part that may hang. Askers do not wait longer than 700 ms and join a question that is open already,
 * so that probes, which anyone may send, cost a part that is away no more than one question in five seconds.
 *
 * @throws what `ask` throws, or that no answer came in time
 */
export function probe<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let open: { answer: Promise<Answer>; since: number } | undefined

  function join(): Promise<Answer> {
    if (open !== undefined && performance.now() - open.since < openAtMostMs) return open.answer
    const asked = { answer: ask(), since: performance.now() }
    open = asked
    const close = () => {
      if (open === asked) open = undefined
    }
    asked.answer.then(close, close)
    return asked.answer
  }

  return async () => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${answerWithinMs} ms`)), answerWithinMs)
    })
    try {
      return await Promise.race([join(), late])
    } finally {
      clearTimeout(timer)
    }
  }
}

/** For statements behind a probe: the connection of one that hangs is given up a little later than its asker gave up. */
export const statementWithinMs = 2 * answerWithinMs
