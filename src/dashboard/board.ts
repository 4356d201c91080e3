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
import type { ApplyQueue } from '../queue/backend.ts'
import { basePath, iconPath, logoutPath } from './pages.ts'
import { hashSource, pagePolicy } from './policy.ts'

const dist = new URL('dist/', import.meta.resolve('@bull-board/ui/package.json'))

export const boardFiles = fileURLToPath(new URL('static/', dist))

/** The drop-down lists of the board add this style to the page. */
const listStyle =
  '.base-ui-disable-scrollbar{scrollbar-width:none}.base-ui-disable-scrollbar::-webkit-scrollbar{display:none}'

/** `manage` allows inline styles, because the editor of a job's data adds style sheets. */
export const boardPolicies = {
  view: pagePolicy("'self'", hashSource(listStyle)),
  manage: pagePolicy("'self'", "'unsafe-inline'"),
}

export const uiConfig: UIConfig = {
  boardTitle: 'Gatewright queues',
  boardLogo: { path: iconPath, width: 28, height: 28 },
  favIcon: { default: iconPath, alternative: iconPath },
  // Operators have no use for the board's documentation, or for the version and memory of Redis.
  hideDocsLink: true,
  hideRedisDetails: true,
}

/** The queue as the board shows it: without actions for users who may only view it. */
export function queuesOf(queue: ApplyQueue, readOnlyMode: boolean): BullBoardQueues {
  const description = 'One job per submission. Its run has the result.'
  // The adapter works with either store, but its type knows queues on Redis only.
  const adapter = new BullMQAdapter(queue as unknown as Queue, { readOnlyMode, description })
  return new Map([[adapter.getName(), adapter]])
}

/** The routes of Bull Board, below the board's path. `pages`: all answer the same page, whose script shows the right view. */
export type Board = { readonly routes: readonly AppControllerRoute[]; readonly pages: AppViewRoute }

/** Bull Board hands its routes to an adapter for the web server; this one only keeps them. */
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

const noscript = '<noscript>The queues are shown by JavaScript, which this browser does not run.</noscript>'

/** The board's own page, without the fonts that it takes from another host, and without inline styles. */
const template = readFileSync(new URL('index.ejs', dist), 'utf8')
  .replace(/<link href="https:[^>]*>/g, '')
  .replace(/(<div id="root">).*<\/style>\s*(<\/div>)/s, `$1$2${noscript}`)
if (/https?:|<style|style=/.test(template))
  throw new Error('The page of @bull-board/ui has inline styles or other hosts')

export function boardPage({ pages }: Board, username: string): string {
  const miscLinks = [{ text: `${username}: log out`, url: logoutPath }]
  // In `uiConfig`, which is JSON, the board escapes `<` and `>`. The other values are constants of ours.
  const { params } = pages.handler({ basePath, uiConfig: { ...uiConfig, miscLinks } })
  return template.replace(/<%[=-] (\w+) %>/g, (_, name: string) => params[name] ?? '')
}
