import { readdirSync, readFileSync } from 'node:fs'
import { within } from '../test/support/template.ts'

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

/** @property ended seconds of its children that have ended */
type Process = { readonly pid: number; readonly parent: number; readonly seconds: number; readonly ended: number }

function read(pid: number): Process | undefined {
  try {
    // The name may contain spaces. State and parent follow it and, as fields 14 to 17 of proc(5), user and system time,
    // and those of children that have ended, such as connections of PostgreSQL.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    const sum = (from: number, to: number) =>
      fields.slice(from, to).reduce((all, field) => all + Number(field), 0) / ticks
    return { pid, parent: Number(fields[1]), seconds: sum(11, 15), ended: sum(13, 15) }
  } catch {
    // The process has ended meanwhile.
    return undefined
  }
}

/** Milliseconds of processor time of these processes until now; of one that is gone, or unknown to this system, 0. */
export const cpuMsOf = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => {
    try {
      const tasks = readdirSync(`/proc/${pid}/task`)
      const ns = tasks.map((task) =>
        Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ', 1)[0]),
      )
      return sum + ns.reduce((all, each) => all + each, 0) / 1_000_000
    } catch {
      return sum
    }
  }, 0)

/** The sessions of the API, or of other programs, in PostgreSQL, as process ids. @param url of the database */
export const sessionsOf = (url: string, programs: readonly string[] = ['gatewright-api']): Promise<number[]> =>
  within(url, async (client) => {
    const text = `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = ANY($1::text[])`
    return (await client.query<{ pid: number }>(text, [programs])).rows.map(({ pid }) => pid)
  })

/**
 * Milliseconds of processor time of sessions and of what they started: parallel workers count once they have ended. On a
 * server of this machine.
 */
export function cpuMsOfSessions(pids: readonly number[]): number {
  const [first] = pids
  const server = first === undefined ? undefined : read(first)?.parent
  const ended = server === undefined ? 0 : (read(server)?.ended ?? 0)
  return cpuMsOf(pids) + ended * 1_000
}
