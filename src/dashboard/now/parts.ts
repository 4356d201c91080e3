import { isSilent, type KnownProcess } from '../../db/presence.ts'
import { type Html, html } from '../../http/html.ts'
import type { Check, Checks } from '../../http/readiness.ts'
import { type Row, table } from '../table.ts'
import { duration, mark, nameText, number, pauseSentence } from '../words.ts'
import { silentFirst } from '../workers.ts'
import type { Now } from './read.ts'

/** A line for each part of the installation, as the probes judge it, for each worker, and for each silent server. */
export const parts = (now: Now): Html =>
  table('Parts', { Part: 'plain', State: 'plain', Details: 'text' }, [
    ...Object.entries(names).map(([part, name]) =>
      lineOf(name, now.checks[part as keyof Checks], part === 'pause' ? pauseOf(now) : null),
    ),
    ...someOf('Workers', silentFirst(now.workers ?? []).map(workerLine)),
    ...someOf('Servers', serverLines(now.servers)),
  ])

/** The most rows of each part. */
const mostRows = 30

/** The first rows of a part. The page of workers has all of them. */
function someOf(part: string, rows: readonly Row[]): readonly Row[] {
  const left = rows.length - mostRows
  return left <= 0
    ? rows
    : [...rows.slice(0, mostRows), { id: `part-more-${part}`, cells: [part, '', `And ${number(left)} more.`] }]
}

const names: Readonly<Record<keyof Checks, string>> = {
  database: 'Database',
  changes: 'Changes',
  migrations: 'Migrations',
  versions: 'Versions',
  queue: 'Queue',
  pause: 'Pause',
  secrets: 'Secret key',
  // The lines of the workers follow.
  worker: 'Workers',
}

/** The pause, with its time in the zone of the caller; null when there is none. */
const pauseOf = ({ pause }: Now): Html | null => (pause === null || pause === 'none' ? null : pauseSentence(pause))

/** @param details in place of those that the probes have */
const lineOf = (name: string, { ok, detail }: Check, details: Html | null) => ({
  id: `part-${name}`,
  cells: [name, ok ? mark('good', 'healthy') : mark('bad', 'not healthy'), details ?? detail],
})

/** @param heard the sentence about a process that is heard @param what the kind of a silent one */
function processLine(each: KnownProcess, heard: string, what = 'Not heard'): Row {
  const { id, host, processId, version, seenS } = each
  const isHeard = !isSilent(each)
  return {
    id: `part-${id}`,
    cells: [
      html`<span class="inner">${nameText(host)}, ${String(processId)}</span>`,
      isHeard ? mark('good', 'heard') : mark('bad', 'silent'),
      `${isHeard ? heard : `${what} for ${duration(seenS * 1_000)}`}. Version ${version}.`,
    ],
  }
}

const workerLine = (worker: KnownProcess): Row => processLine(worker, `Has ${worker.busy} of ${worker.slots} jobs`)

/** One line for the servers that are heard, and one for each silent one. */
function serverLines(servers: readonly KnownProcess[] | null): Row[] {
  const line = (state: Html, details: string) => ({ id: 'part-Servers', cells: ['Servers', state, details] })
  if (servers === null) return [line(mark('open', 'not known'), 'They could not be read just now.')]
  const silent = servers.filter(isSilent)
  const heard = servers.length - silent.length
  return [
    ...(heard > 0 ? [line(mark('good', 'heard'), `${number(heard)} heard.`)] : []),
    ...silent.map((each) => processLine(each, '', 'A server of the API, not heard')),
  ]
}
