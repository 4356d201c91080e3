import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks per second, which Linux shows to programs as 100 everywhere. */
const ticks = 100

/** CPU seconds of a process and its children so far; NaN on a system without /proc. */
export function cpuSeconds(pid: number): number {
  try {
    const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [read(Number(name))] : []))
    return all
      .filter((each) => each?.pid === pid || each?.parent === pid)
      .reduce((sum, each) => sum + (each?.seconds ?? 0), 0)
  } catch {
    return Number.NaN
  }
}

function read(pid: number): { pid: number; parent: number; seconds: number } | undefined {
  try {
    // After the name, which may contain spaces: state, parent and, as fields 14 and 15 of proc(5), user and system time.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return { pid, parent: Number(fields[1]), seconds: (Number(fields[11]) + Number(fields[12])) / ticks }
  } catch {
    // The process has ended meanwhile.
    return undefined
  }
}
