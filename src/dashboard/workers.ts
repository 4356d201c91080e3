import { inTime } from '../db/in-time.ts'
import { isSilent, type KnownProcess, readProcesses, silentAfterS, silentOnes } from '../db/presence.ts'
import type { Api } from '../http/api.ts'
import { html } from '../http/html.ts'
import { cutTo } from '../sides.ts'
import { workersPath } from './addresses.ts'
import { pageRoute, sendPage } from './frame.ts'
import type { Sources } from './sources.ts'
import { table } from './table.ts'
import { duration, mark, nameText, number, time } from './words.ts'

/** /admin/workers/: each process of an installation with a heartbeat in the last quarter of an hour. */
export function workersPage(app: Api, { db }: Sources): void {
  app.get(workersPath, pageRoute({}), async (_, reply) => {
    const [workers, servers] = await inTime(Promise.all([readProcesses(db, 'workers'), readProcesses(db, 'servers')]))
    const heard = [...workers, ...servers].filter((each) => !isSilent(each))
    const versions = new Set(heard.map(({ version }) => version)).size
    const content = html`${versions > 1 && html`<p class="summary warn">${mark('warn', `The processes are of ${versions} versions: an upgrade is not complete.`)}</p>`}
<section><h2>Workers of the queue</h2>
${summary('worker', workers, 'No worker is heard: start one.')}
${workers.length > 0 && list('Workers', workers, { busy: 'Jobs', taken: 'Last job' })}</section>
<section><h2>Servers of the API</h2>
${summary('server', servers, 'No server is heard.')}
${servers.length > 0 && list('Servers of the API', servers, { busy: 'Submissions', taken: 'Last submission' })}</section>
<p class="quiet">A process that was not heard for ${String(silentAfterS)} s is silent. It is forgotten after a quarter of an hour.</p>`
    return sendPage(reply, { title: 'Workers', asOf: new Date(), within: workersPath, isLive: true, content })
  })
}

function summary(what: 'worker' | 'server', all: readonly KnownProcess[], none: string) {
  if (all.length === 0) return html`<p class="summary bad">${mark('bad', none)}</p>`
  const silent = silentOnes(all, what)
  if (silent !== '') return html`<p class="summary warn">${mark('warn', cutTo(1_000, silent))}</p>`
  const sum = (of: (each: KnownProcess) => number) => number(all.reduce((total, each) => total + of(each), 0))
  const [busy, slots] = [sum((each) => each.busy), sum((each) => each.slots)]
  const work = what === 'worker' ? `They have ${busy} of ${slots} jobs.` : `They wait for ${busy} submissions.`
  return html`<p class="summary good">${mark('good', `All are heard. ${work}`)}</p>`
}

/**
 * A list of processes, the silent ones first. @param heads the heads for its present load, and for the time at which it last took
 * something
 */
const list = (what: string, all: readonly KnownProcess[], heads: { readonly busy: string; readonly taken: string }) =>
  table(
    what,
    all.toSorted((one, other) => Number(isSilent(other)) - Number(isSilent(one))),
    {
      Host: ['name', ({ host }) => nameText(host)],
      Process: ['number', ({ processId }) => String(processId)],
      State: [
        'plain',
        (each) => (isSilent(each) ? mark('warn', `silent for ${duration(each.seenS * 1_000)}`) : mark('good', 'heard')),
      ],
      [heads.busy]: ['number', (each) => (isSilent(each) ? 'not known' : `${each.busy} of ${each.slots}`)],
      Version: ['plain', ({ version }) => nameText(version)],
      [heads.taken]: ['plain', ({ takenAt }) => (takenAt === null ? 'none yet' : time(takenAt))],
      Started: ['plain', ({ startedAt }) => time(startedAt)],
    },
    { idOf: ({ id }) => `process-${id}`, most: mostRows },
  )

const mostRows = 100
