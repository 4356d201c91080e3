import { setImmediate } from 'node:timers/promises'

/** So long one turn of the event loop may take: others wait that long. */
const longestMs = 10

/** @returns a function to call often in long work: it lets other work of the process have its turn */
export function turns(): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < longestMs) return
    await setImmediate()
    since = performance.now()
  }
}
