import { setImmediate } from 'node:timers/promises'

/** Long work of one process that others share. */

/** The longest turn of the event loop: others wait that long for each of their steps. */
const longestMs = 3

/**
 * @param signal ends the work
 * @returns a function to call often in long work: it lets other work of the process have its turn, and throws when the work
 *   shall end
 */
export function turns(signal?: AbortSignal): () => Promise<void> {
  let since = performance.now()
  return async () => {
    signal?.throwIfAborted()
    if (performance.now() - since < longestMs) return
    await setImmediate()
    since = performance.now()
  }
}

/** Does work that pauses often, and takes turns with others at its pauses. */
export async function inTurns<Result>(work: Generator<void, Result>): Promise<Result> {
  const takeTurns = turns()
  let next = work.next()
  for (; next.done !== true; next = work.next()) await takeTurns()
  return next.value
}

/** Does such work without a pause. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  let next = work.next()
  while (next.done !== true) next = work.next()
  return next.value
}
