import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import type * as bullBoard from '@bull-board/api/typings/app'
import type { Job, Queue } from 'bullmq'
import { html } from '../../http/html.ts'
import { hashSource } from '../../http/page.ts'
import { isObject } from '../../json-object.ts'
import type { Actor } from '../../permissions.ts'
import type { ApplyQueue } from '../../queue/backend.ts'
import { jobIds } from '../../queue/counts.ts'
import { probeName, runJob } from '../../queue/define.ts'
import { describePause, type Pause } from '../../queue/pause.ts'
import { boardPath, iconPath, nowPath, runPagePath } from '../addresses.ts'
import { assets } from '../assets.ts'
import { header, pagePolicy } from '../frame.ts'
import { sentence } from '../words.ts'

const dist = new URL('dist/', import.meta.resolve('@bull-board/ui/package.json'))

export const boardFiles = fileURLToPath(new URL('static/', dist))

/** The drop-down lists of the board add this style to the page. */
const listStyle =
  '.base-ui-disable-scrollbar{scrollbar-width:none}.base-ui-disable-scrollbar::-webkit-scrollbar{display:none}'

export const boardPolicy = pagePolicy(hashSource(listStyle))

export const uiConfig: bullBoard.UIConfig = {
  boardTitle: 'Gatewright queues',
  favIcon: { default: iconPath, alternative: iconPath },
  // Operators have no use for the board's documentation, or for the version and memory of Redis.
  hideDocsLink: true,
  hideRedisDetails: true,
}

/** @returns why runs were not applied, by their ids; nothing about runs that the caller does not see */
type ReadCauses = (runs: readonly string[]) => Promise<ReadonlyMap<string, string>>

/**
 * The queue as the board shows it: one job a run, that of its newest attempt, and without actions, because the board offers ones that
 * make no sense here (docs/adr/0033-a-job-ends-with-its-run.md). Each job links to the page of its run.
 */
export function queuesOf(queue: ApplyQueue, pause: Pause | null, causesOf: ReadCauses): bullBoard.BullBoardQueues {
  const description =
    pause === null ? 'One job a run. It shows the outcome of its run.' : sentence(describePause(pause))
  const externalJobUrl = ({ data }: { data: unknown }) => {
    const { success, data: job } = runJob.safeParse(data)
    return { displayText: 'Run', href: success ? runPagePath(job.run) : nowPath }
  }
  const adapter = new Adapter(queue, causesOf, { readOnlyMode: true, description, externalJobUrl })
  // A job of version 0.2.0 has the log of its run, which may hold values.
  adapter.setFormatter('returnValue', (value) => (isObject(value) ? { ...value, logs: undefined } : value))
  return new Map([[adapter.getName(), adapter]])
}

/** The most jobs of a state that are counted. */
const mostJobs = 10_000

/** One for each request: it reads the ids once. */
class Adapter extends BullMQAdapter {
  readonly #queue: ApplyQueue
  readonly #causesOf: ReadCauses
  #ids: Promise<ReadonlyMap<string, string[]>> | undefined

  constructor(queue: ApplyQueue, causesOf: ReadCauses, options: ConstructorParameters<typeof BullMQAdapter>[1]) {
    // It works with either store, but its type has queues on Redis only.
    super(queue as unknown as Queue, options)
    this.#queue = queue
    this.#causesOf = causesOf
  }

  override async getJobCounts() {
    const shown = await this.#shown()
    return Object.fromEntries(this.getJobStatuses().map((status) => [status, shown.get(status)?.length ?? 0])) as never
  }

  /** Ids begin with the time of their run: those of several states are in its order. */
  override async getJobs(statuses: bullBoard.JobStatus[], start = 0, end = mostJobs) {
    const shown = await this.#shown()
    const ids = statuses.flatMap((status) => shown.get(status) ?? [])
    const page = (statuses.length > 1 ? ids.toSorted().reverse() : ids).slice(start, end + 1)
    return await this.#explained(await Promise.all(page.map((id) => super.getJob(id))))
  }

  override async getJob(id: string) {
    const [job] = await this.#explained([await super.getJob(id)])
    return job
  }

  #shown() {
    this.#ids ??= jobIds(this.#queue, mostJobs).then(withoutEarlier)
    return this.#ids
  }

  /** Jobs whose error has the cause of their run. Jobs of version 0.2.0 have what follows a colon, which may hold values. */
  async #explained(found: (Job | undefined)[]): Promise<Job[]> {
    const jobs = found.filter((job) => job !== undefined)
    const failed = jobs.filter(({ failedReason }) => failedReason)
    const runOf = ({ data }: Job) => runJob.safeParse(data).data?.run ?? ''
    const causes = await this.#causesOf(failed.map(runOf).filter(Boolean))
    for (const job of failed)
      job.failedReason = [job.failedReason.split(':', 1).join(), causes.get(runOf(job))].filter(Boolean).join(': ')
    return jobs
  }
}

/** The jobs of the newest attempts, and no probes. Less than ten attempts are made of a run, so the last of its ids is the newest. */
function withoutEarlier(ids: ReadonlyMap<string, string[]>): ReadonlyMap<string, string[]> {
  const all = [...ids.values()].flat().filter((id) => !id.startsWith(probeName))
  const newest = new Set(new Map(all.toSorted().map((id) => [id.replace(/-\d+$/, ''), id])).values())
  return new Map([...ids].map(([state, of]) => [state, of.filter((id) => newest.has(id))]))
}

/** The calls of the board that have a purpose here. All of them read. */
const served: ReadonlySet<string> = new Set([
  '/api/queues',
  '/api/queues/:queueName/:jobId',
  '/api/queues/:queueName/:jobId/flow',
  '/api/queues/:queueName/:jobId/logs',
  '/api/queues/:queueName/metrics',
  '/api/queues/:queueName/workers',
  '/api/job-schedulers',
])

export const isServed = ({ method, route }: bullBoard.AppControllerRoute): boolean =>
  [method].flat().every((each) => each === 'get') && [route].flat().every((path) => served.has(path))

/** The routes of Bull Board, below the board's path. `pages`: all answer the same page, whose script shows the right view. */
export type Board = { readonly routes: readonly bullBoard.AppControllerRoute[]; readonly pages: bullBoard.AppViewRoute }

/** Opens the board. It passes its routes to an adapter for the web server; this one only keeps them. */
export function openBoard(): Board {
  const kept: { routes?: bullBoard.AppControllerRoute[]; pages?: bullBoard.AppViewRoute } = {}
  const adapter: bullBoard.IServerAdapter = {
    setApiRoutes: (routes) => Object.assign(kept, { routes }) && adapter,
    setEntryRoute: (pages) => Object.assign(kept, { pages }) && adapter,
    setQueues: () => adapter,
    setViewsPath: () => adapter,
    setStaticPath: () => adapter,
    setErrorHandler: () => adapter,
    setUIConfig: () => adapter,
  }
  createBullBoard({ queues: [], serverAdapter: adapter })
  const { routes, pages } = kept
  if (routes === undefined || pages === undefined) throw new Error('@bull-board/api no longer describes its routes')
  return { routes, pages }
}

/** The text that the board's script replaces: a browser that blocks or fails to load the script shows it. */
const untilScript = html`<p>The queue board needs JavaScript, and its script has not loaded. <a href="${nowPath}">The first page</a> works without it.</p>`

/** The board's own page, without the fonts that it takes from another host, and without inline styles. */
const template = readFileSync(new URL('index.ejs', dist), 'utf8')
  .replace(/<link href="https:[^>]*>/g, '')
  // The header of the board is that of an article: the page has one of its own.
  .replace(/<div id="root">.*<\/style>\s*<\/div>/s, `<article id="root">${untilScript}</article>`)
if (/https?:|<style|style=/.test(template))
  throw new Error('The page of @bull-board/ui has inline styles or other hosts')

export function boardPage({ pages }: Board, actor: Actor, zone: string): string {
  // The board escapes `<` and `>` in `uiConfig`, which is JSON. The other values are constants of ours.
  const at = { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23', timeZone: zone } as const
  const config = { ...uiConfig, dateFormats: { short: at, common: at, full: at } }
  const { params } = pages.handler({ basePath: boardPath, uiConfig: config })
  return template
    .replace(/<%[=-] (\w+) %>/g, (_, name: string) => params[name] ?? '')
    .replace('</head>', () => `<link href="${assets.board.path}" rel="stylesheet"></head>`)
    .replace('<article', (article) => `${header(actor, `${boardPath}/`)}${article}`)
    .replace('</header>', '<h1>Queue board</h1></header>')
}
