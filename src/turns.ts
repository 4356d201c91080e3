import { setImmediate, setTimeout } from 'node:timers/promises'

/** Long work in a process that serves other work too. The work is done in steps: one turn of the event loop does one step. */

/** The longest turn of the event loop: other work waits that long for each of their steps. */
const longestMs = 3

let lastTurn: Promise<unknown> = Promise.resolve()

/** Work has its turns in the order in which it came. */
function nextTurn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate())
  return lastTurn
}

/**
 * @param signal ends the work
 * @returns a function to call often in long work: it lets other work of the process have its turn, and throws when the work shall
 * end
 */
export function turns(signal?: AbortSignal): () => Promise<void> {
  let since = performance.now()
  return async () => {
    signal?.throwIfAborted()
    if (performance.now() - since < longestMs) return
    await nextTurn()
    since = performance.now()
  }
}

/** Does work that pauses often, and takes turns with other work at its pauses. */
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

/** Work that takes long and cannot pause, by its requester. */
const asked = new Map<unknown, (() => void)[]>()
let serving = Promise.resolve()

/** Other work has as much time behind such work as it took, up to this. */
const longestPauseMs = 250

/**
 * Does work that takes long and cannot pause: one at a time in this process, in a turn of its own. Behind it, other work has as
 * much time as it took. Requesters take turns, however much work one of them has.
 *
 * @param who the requester
 */
export async function alone<Result>(who: unknown, work: () => Result): Promise<Result> {
  const { promise, resolve } = Promise.withResolvers<void>()
  asked.getOrInsertComputed(who, () => []).push(resolve)
  serving = serving.then(serveNext)
  await promise
  return work()
}

async function serveNext(): Promise<void> {
  await nextTurn()
  const [first] = asked
  if (first === undefined) return
  const [who, works] = first
  const next = works.shift()
  // The requester moves to the end of the line.
  asked.delete(who)
  if (works.length > 0) asked.set(who, works)
  const since = performance.now()
  next?.()
  // The work is done in the microtasks before this.
  await setImmediate()
  await setTimeout(Math.min(longestPauseMs, performance.now() - since))
}
