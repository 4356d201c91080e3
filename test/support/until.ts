import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until `condition` gives something other than false, null or undefined, and returns that.
 *
 * @param what what is awaited, for the message: `the run to finish`
 * @param withinMs generous, for a busy machine: only a test that fails waits for so long
 * @throws when it did not come within `withinMs`; the cause is what the condition last threw
 */
export async function until<Result>(
  what: string,
  condition: () => Result | Promise<Result>,
  { withinMs = 45_000, everyMs = 10 }: { withinMs?: number; everyMs?: number } = {},
): Promise<NonNullable<Exclude<Result, false>>> {
  const deadline = performance.now() + withinMs
  let seen: unknown
  let failure: unknown
  do {
    try {
      const result = await condition()
      if (result !== false && result !== null && result !== undefined)
        return result as NonNullable<Exclude<Result, false>>
      seen = result
      failure = undefined
    } catch (error) {
      failure = error
    }
    await delay(everyMs)
  } while (performance.now() < deadline)
  const last = failure === undefined ? `last seen: ${seen}` : `last error: ${failure}`
  throw new Error(`waited ${withinMs} ms for ${what}; ${last}`, { cause: failure })
}

/** Whether a process with this id runs. A zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return !isZombie(pid)
}

/** Linux says so in `<pid> (<name, which may hold anything>) <state> ...`; elsewhere it is not known. */
function isZombie(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return status.startsWith('Z', status.lastIndexOf(')') + 2)
  } catch {
    return false
  }
}
