import { isSilent } from '../../db/presence.ts'
import { type Html, html } from '../../http/html.ts'
import type { Check, Checks } from '../../http/readiness.ts'
import type { KnownWorker } from '../../queue/workers.ts'
import { table } from '../table.ts'
import { duration, mark, pauseSentence } from '../words.ts'
import type { Now } from './read.ts'

/** A line for each part of the installation, as readiness judges it, and for each worker. */
export const parts = ({ checks, pause, workers }: Now): Html =>
  table(
    'Parts',
    [{ head: 'Part' }, { head: 'State' }, { head: 'Details', of: 'text' }],
    [
      ...Object.entries(names).map(([part, name]) => lineOf(name, checks[part as keyof Checks])),
      ...(pause !== null && pause !== 'none'
        ? [{ id: 'part-pause', cells: ['Pause', mark('bad', 'paused'), pauseSentence(pause)] }]
        : []),
      ...(workers ?? []).map(workerLine),
    ],
  )

const names: Readonly<Record<keyof Checks, string>> = {
  database: 'Database',
  migrations: 'Migrations',
  queue: 'Queue',
  worker: 'Workers',
  secrets: 'Secret key',
}

const lineOf = (name: string, { ok, detail }: Check) => ({
  id: `part-${name}`,
  cells: [name, ok ? mark('good', 'healthy') : mark('bad', 'not healthy'), detail],
})

function workerLine(worker: KnownWorker) {
  const { id, host, processId, version, slots, busy, seenS } = worker
  return {
    id: `part-${id}`,
    cells: [
      html`<span class="inner">${host}, ${String(processId)}</span>`,
      isSilent(worker) ? mark('bad', 'silent') : mark('good', 'heard'),
      isSilent(worker)
        ? `Not heard for ${duration(seenS * 1_000)}. Version ${version}.`
        : `Has ${busy} of ${slots} jobs. Version ${version}.`,
    ],
  }
}
