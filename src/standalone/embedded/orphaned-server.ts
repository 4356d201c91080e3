import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { attempt } from '../../attempt.ts'
import { StartError } from '../../start-error.ts'

/**
 * Stops the server that a killed start left running on this cluster. Its command line must name the folder, because its process
 * id may belong to another program by now.
 *
 * @throws {StartError} when another program has that id, or the server does not stop
 */
export async function stopOrphanedServer(folder: string): Promise<void> {
  const file = join(folder, 'postmaster.pid')
  const pid = existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : Number.NaN
  if (!(pid > 1) || pid === process.pid) return
  const command = commandOf(pid)
  // PostgreSQL itself ignores the id of a process that does not exist.
  if (command === null) return
  if (!command.includes(folder))
    throw new StartError(
      `${file} says that process ${pid} serves this database, but that is another program: if no other container or machine uses this folder, delete the file and start again.`,
    )
  for (const { signal, withinMs } of [
    { signal: 'SIGINT', withinMs: 5_000 },
    { signal: 'SIGQUIT', withinMs: 3_000 },
    // A frozen process gets no other signal. PostgreSQL recovers from its log at the next start.
    { signal: 'SIGKILL', withinMs: 3_000 },
  ] as const) {
    // A frozen child without its parent would keep the shared memory, and the next server would not start.
    const pids = signal === 'SIGKILL' ? [pid, ...childrenOf(pid)] : [pid]
    // One that may have ended by itself.
    for (const each of pids) attempt(() => process.kill(each, signal))
    if (!(await Promise.all(pids.map((each) => hasEnded(each, withinMs)))).every(Boolean)) continue
    // PostgreSQL takes a killed server for a running one until its parent has asked for its end.
    if (signal === 'SIGKILL') rmSync(file, { force: true })
    return
  }
  throw new StartError(
    `A server that an earlier start left behind (process ${pid}) does not stop: end it by hand, then start again.`,
  )
}

/** The processes that this one started; none on a system that cannot list them. A slim container has no `pgrep`. */
function childrenOf(pid: number): number[] {
  const list =
    process.platform === 'linux'
      ? readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      : spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout
  return (list ?? '').split(/\s+/).filter(Boolean).map(Number)
}

async function hasEnded(pid: number, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (performance.now() < deadline) {
    if (commandOf(pid) === null) return true
    await delay(20)
  }
  return false
}

/** The command line of a process; null when there is none, or it is a zombie. */
function commandOf(pid: number): string | null {
  if (process.platform === 'linux') return attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) || null
  const { stdout } = spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout?.trim() || null
}
