import { isSilent, type KnownProcess } from '../../db/presence.ts'
import { type Html, html } from '../../http/html.ts'
import type { Check, Checks } from '../../http/readiness.ts'
import { type Row, table } from '../table.ts'
import { duration, mark, nameText, number, pauseSentence } from '../words.ts'
import { silentFirst } from '../workers.ts'
import type { Now } from './read.ts'

/** A line for each part of the installation, as readiness judges it, for each worker, and for each silent server. */
export const parts = (now: Now): Html =>
  table('Parts', { Part: 'plain', State: 'plain', Details: 'text' }, [
    ...Object.entries(names).map(([part, name]) => lineOf(name, checkOf(now, part as keyof Checks))),
    ...(now.pause !== null && now.pause !== 'none'
      ? [{ id: 'part-pause', cells: ['Pause', mark('bad', 'paused'), pauseSentence(now.pause)] }]
      : []),
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

/** The check of a part. The line of the pause names its user and time. */
function checkOf({ checks, pause }: Now, part: keyof Checks): Check {
  const isStopped = pause !== null && pause !== 'none' && checks.database.ok && checks.queue.ok
  return part === 'worker' && isStopped
    ? { ok: false, detail: 'No worker takes jobs while the queue is paused: see Pause.' }
    : checks[part]
}

const names: Readonly<Record<keyof Checks, string>> = {
  database: 'Database',
  migrations: 'Migrations',
  queue: 'Queue',
  secrets: 'Secret key',
  // The lines of the workers follow.
  worker: 'Workers',
}

const lineOf = (name: string, { ok, detail }: Check) => ({
  id: `part-${name}`,
  cells: [name, ok ? mark('good', 'healthy') : mark('bad', 'not healthy'), detail],
})

function workerLine(worker: KnownProcess) {
  const { id, host, processId, version, slots, busy, seenS } = worker
  return {
    id: `part-${id}`,
    cells: [
      html`<span class="inner">${nameText(host)}, ${String(processId)}</span>`,
      isSilent(worker) ? mark('bad', 'silent') : mark('good', 'heard'),
      isSilent(worker)
        ? `Not heard for ${duration(seenS * 1_000)}. Version ${version}.`
        : `Has ${busy} of ${slots} jobs. Version ${version}.`,
    ],
  }
}

function serverLines(servers: readonly KnownProcess[] | null) {
  if (servers === null)
    return [{ id: 'part-Servers', cells: ['Servers', mark('open', 'not known'), 'They could not be read just now.'] }]
  const silent = servers.filter(isSilent)
  const heard = servers.length - silent.length
  return [
    ...(heard > 0
      ? [{ id: 'part-Servers', cells: ['Servers', mark('good', 'heard'), `${number(heard)} heard.`] }]
      : []),
    ...silent.map(({ id, host, processId, version, seenS }) => ({
      id: `part-${id}`,
      cells: [
        html`<span class="inner">${nameText(host)}, ${String(processId)}</span>`,
        mark('bad', 'silent'),
        `A server of the API, not heard for ${duration(seenS * 1_000)}. Version ${version}.`,
      ],
    })),
  ]
}
