import { spawnSync } from 'node:child_process'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf, StartError } from '../start-error.ts'

/**
 * One start at a time works on a `DATA_DIR`. The lock is a file that names its process; that of a process which is
 * no more counts for nothing.
 *
 * @returns gives the lock back
 * @throws {StartError} when another process holds it
 */
export function lock(dataDir: string): () => void {
  const file = join(dataDir, 'lock')
  const mine = `${file}.${process.pid}`
  const holder = `${process.pid} ${birthOf(process.pid) ?? ''}\n`
  writeFileSync(mine, holder, { mode: 0o644 })
  try {
    for (let attempt = 1; attempt <= 5; attempt++) {
      if (take(mine, file)) return () => release(file, holder)
      const other = read(file)
      const pid = Number.parseInt(other, 10)
      if (isHeld(pid, other)) {
        throw new StartError(
          `Gatewright already runs on ${dataDir} (process ${pid}): stop that one first, or choose another DATA_DIR.`,
        )
      }
      // Moved away under a name of our own: of two that see a dead lock, only one moves it.
      const stale = `${file}.stale-${process.pid}`
      renameIfThere(file, stale)
      // Unless it was replaced in between: then it goes back.
      if (read(stale) !== other) take(stale, file)
      rmSync(stale, { force: true })
    }
    throw new StartError(`${file} changes hands all the time: other starts are under way on this DATA_DIR.`)
  } finally {
    rmSync(mine, { force: true })
  }
}

/** Another process, alive, and the very one that wrote the lock: numbers are used again, after a reboot from the start. */
function isHeld(pid: number, holder: string): boolean {
  if (!(pid > 0) || pid === process.pid) return false
  const birth = birthOf(pid)
  const written = holder.trim().split(' ').slice(1).join(' ')
  return birth !== null && (written === '' || written === birth)
}

function take(from: string, file: string): boolean {
  try {
    linkSync(from, file)
    return true
  } catch (error) {
    if (reasonOf(error) === 'EEXIST') return false
    throw error
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (reasonOf(error) === 'ENOENT') return ''
    throw error
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (reasonOf(error) !== 'ENOENT') throw error
  }
}

function release(file: string, holder: string): void {
  if (read(file) === holder) rmSync(file, { force: true })
}

/** When a process was born, as a word; null when there is none; empty where the system does not say. */
function birthOf(pid: number): string | null {
  if (process.platform === 'linux') {
    try {
      // Field 22, counted behind the command, which may hold blanks and brackets.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
      return fields?.[0] === 'Z' ? null : `${boot}/${fields?.[19]}`
    } catch {
      return null
    }
  }
  if (process.platform !== 'win32') {
    return (
      spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' })
        .stdout?.trim()
        .replaceAll(/\s+/g, '-') || null
    )
  }
  try {
    process.kill(pid, 0)
    return ''
  } catch (error) {
    return reasonOf(error) === 'EPERM' ? '' : null
  }
}
