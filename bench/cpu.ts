import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks per second, which Linux shows to programs as 100 everywhere. */
const ticks = 100

/** CPU seconds of a process and its children so far, ended ones too; NaN on a system without /proc. */
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
    // After the name, which may contain spaces: state, parent and, as fields 14 to 17 of proc(5), user and system time, and
    // those of children that have ended, such as connections of PostgreSQL.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    const seconds = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / ticks
    return { pid, parent: Number(fields[1]), seconds }
  } catch {
    // The process has ended meanwhile.
    return undefined
  }
}
