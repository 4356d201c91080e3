import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { StartError } from '../../start-error.ts'

/**
 * Stops the server that a killed start has left running on this cluster. It is known by its command line, which
 * names the folder: a process number alone may long be another program's.
 *
 * @returns whether there was one
 * @throws {StartError} when something else has that number, or the server does not stop
 */
export async function stopLeftover(folder: string): Promise<boolean> {
  const file = join(folder, 'postmaster.pid')
  const pid = existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : Number.NaN
  // Of a number that is not in use PostgreSQL itself knows that it means nothing.
  if (!(pid > 1) || pid === process.pid) return false
  const command = commandOf(pid)
  if (command === null) return false
  if (!command.includes(folder)) {
    throw new StartError(
      `${file} says that process ${pid} serves this database, but that is another program: if no other container or machine uses this folder, delete the file and start again.`,
    )
  }
  for (const { signal, withinMs } of [
    { signal: 'SIGINT', withinMs: 5_000 },
    { signal: 'SIGQUIT', withinMs: 3_000 },
  ] as const) {
    process.kill(pid, signal)
    if (await ends(pid, withinMs)) return true
  }
  throw new StartError(
    `A server that an earlier start left behind (process ${pid}) does not stop: end it by hand, then start again.`,
  )
}

async function ends(pid: number, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (performance.now() < deadline) {
    if (commandOf(pid) === null) return true
    await delay(20)
  }
  return false
}

/** The command line of a process; null when there is none, or when it is dead and only waits to be collected. */
function commandOf(pid: number): string | null {
  if (process.platform === 'linux') {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') || null
    } catch {
      return null
    }
  }
  const { stdout } = spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout?.trim() || null
}
