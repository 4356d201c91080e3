import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardQueues,
  IServerAdapter,
  UIConfig,
} from '@bull-board/api/typings/app'
import type { Queue } from 'bullmq'
import { html } from '../../http/html.ts'
import { hashSource } from '../../http/page.ts'
import { isObject } from '../../json-object.ts'
import type { ApplyQueue } from '../../queue/backend.ts'
import { countJobs } from '../../queue/counts.ts'
import { runJob } from '../../queue/define.ts'
import { describePause, type Pause } from '../../queue/pause.ts'
import { boardPath, iconPath, logoutPath, nowPath, runPagePath } from '../addresses.ts'
import { pagePolicy } from '../frame.ts'
import { sentence } from '../words.ts'

const dist = new URL('dist/', import.meta.resolve('@bull-board/ui/package.json'))

export const boardFiles = fileURLToPath(new URL('static/', dist))

/** The drop-down lists of the board add this style to the page. */
const listStyle =
  '.base-ui-disable-scrollbar{scrollbar-width:none}.base-ui-disable-scrollbar::-webkit-scrollbar{display:none}'

export const boardPolicy = pagePolicy(hashSource(listStyle))

export const uiConfig: UIConfig = {
  boardTitle: 'Gatewright queues',
  boardLogo: { path: iconPath, width: 28, height: 28 },
  favIcon: { default: iconPath, alternative: iconPath },
  // Operators have no use for the board's documentation, or for the version and memory of Redis.
  hideDocsLink: true,
  hideRedisDetails: true,
}

/**
 * The queue as the board shows it: without actions, because the board offers ones that make no sense here
 * (docs/adr/0033-a-job-ends-with-its-run.md). Each job links to the page of its run.
 */
export function queuesOf(queue: ApplyQueue, pause: Pause | null): BullBoardQueues {
  const description =
    pause === null
      ? 'One job per attempt of a submission. It shows the outcome of its run.'
      : sentence(describePause(pause))
  const externalJobUrl = ({ data }: { data: unknown }) => {
    const { success, data: job } = runJob.safeParse(data)
    return { displayText: 'Run', href: success ? runPagePath(job.run) : nowPath }
  }
  const adapter = new Adapter(queue, { readOnlyMode: true, description, externalJobUrl })
  return new Map([[adapter.getName(), adapter]])
}

class Adapter extends BullMQAdapter {
  readonly #queue: ApplyQueue

  constructor(queue: ApplyQueue, options: ConstructorParameters<typeof BullMQAdapter>[1]) {
    // It works with either store, but its type has queues on Redis only.
    super(queue as unknown as Queue, options)
    this.#queue = queue
  }

  override async getJobCounts() {
    return { ...(await countJobs(this.#queue)), 'waiting-children': 0 }
  }
}

/**
 * An answer of the board without the sentences of runs, which may hold values: jobs of version 0.2.0 have them in their result
 * and in their failure.
 */
export const withoutSentences = (answer: unknown): unknown =>
  answer === undefined
    ? undefined
    : JSON.parse(JSON.stringify(answer), (name, value: unknown) => {
        if (name === 'failedReason' && typeof value === 'string') return value.split(':', 1).join()
        if (name !== 'returnValue' || !isObject(value)) return value
        const { logs: _logs, ...result } = value
        return result
      })

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

export const isServed = ({ method, route }: AppControllerRoute): boolean =>
  [method].flat().every((each) => each === 'get') && [route].flat().every((path) => served.has(path))

/** The routes of Bull Board, below the board's path. `pages`: all answer the same page, whose script shows the right view. */
export type Board = { readonly routes: readonly AppControllerRoute[]; readonly pages: AppViewRoute }

/** Opens the board. It passes its routes to an adapter for the web server; this one only keeps them. */
export function openBoard(): Board {
  const kept: { routes?: AppControllerRoute[]; pages?: AppViewRoute } = {}
  const adapter: IServerAdapter = {
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
  .replace(/(<div id="root">).*<\/style>\s*(<\/div>)/s, `$1${untilScript}$2`)
if (/https?:|<style|style=/.test(template))
  throw new Error('The page of @bull-board/ui has inline styles or other hosts')

export function boardPage({ pages }: Board, username: string): string {
  const miscLinks = [
    { text: 'Gatewright: now', url: nowPath },
    { text: `${username}: log out`, url: logoutPath },
  ]
  // The board escapes `<` and `>` in `uiConfig`, which is JSON. The other values are constants of ours.
  const { params } = pages.handler({ basePath: boardPath, uiConfig: { ...uiConfig, miscLinks } })
  return template.replace(/<%[=-] (\w+) %>/g, (_, name: string) => params[name] ?? '')
}
