import { html } from '../http/html.ts'
import type { Actor } from '../permissions.ts'
import { isSilent, type KnownWorker, silentAfterS, silentWorkers } from '../queue/workers.ts'
import { workersPath } from './addresses.ts'
import { page } from './frame.ts'
import { table } from './table.ts'
import { duration, mark, number, time } from './words.ts'

/** /admin/workers/: each worker process that was heard within the last quarter of an hour. */
export function workersPage(workers: readonly KnownWorker[], actor: Actor): string {
  const silent = silentWorkers(workers)
  const heard = workers.filter((each) => !isSilent(each))
  const slots = heard.reduce((sum, each) => sum + each.slots, 0)
  const busy = heard.reduce((sum, each) => sum + each.busy, 0)
  const versions = new Set(heard.map(({ version }) => version)).size
  return page({
    title: 'Workers',
    actor,
    within: workersPath,
    isLive: true,
    content: html`<div class="head"><h1>Workers</h1><p class="quiet">As of ${time(new Date())}.</p></div>
${
  workers.length === 0
    ? html`<p class="summary bad">${mark('bad', 'No worker is heard: start one.')}</p>`
    : silent === ''
      ? html`<p class="summary good">${mark('good', `All are heard. They have ${number(busy)} of ${number(slots)} jobs.`)}</p>`
      : html`<p class="summary bad">${mark('bad', silent)}</p>`
}
${versions > 1 && html`<p class="summary bad">${mark('warn', `They are of ${versions} versions: an upgrade is not complete.`)}</p>`}
${workers.length > 0 && list(workers)}
<p class="quiet">A worker that was not heard for ${String(silentAfterS)} s is silent. It is forgotten after a quarter of an hour. Format: which runs it can execute; a newer worker has a higher one.</p>`,
  })
}

const list = (workers: readonly KnownWorker[]) =>
  table(
    'Workers',
    [
      { head: 'Host' },
      { head: 'Process', of: 'number' },
      { head: 'State' },
      { head: 'Jobs', of: 'number' },
      { head: 'Version' },
      { head: 'Format', of: 'number' },
      { head: 'Last job' },
      { head: 'Started' },
      { head: 'Id' },
    ],
    workers.map((each) => {
      const { id, host, processId, version, format, slots, busy, startedAt, takenAt, seenS } = each
      return {
        id: `worker-${id}`,
        look: isSilent(each) ? 'bad' : undefined,
        cells: [
          host,
          String(processId),
          isSilent(each) ? mark('bad', `silent for ${duration(seenS * 1_000)}`) : mark('good', 'heard'),
          isSilent(each) ? 'not known' : `${busy} of ${slots}`,
          version,
          String(format),
          takenAt === null ? 'none yet' : time(takenAt),
          time(startedAt),
          html`<code>${id.slice(0, 8)}</code>`,
        ],
      }
    }),
  )
