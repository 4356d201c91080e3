import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
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
import type { ApplyQueue } from '../../queue/backend.ts'
import { listFiles, type StaticFile } from './files.ts'
import { contentPolicy } from './headers.ts'
import { basePath, iconPath, logoutPath } from './pages.ts'

/**
 * Bull Board taken apart into what it serves. Its own Fastify adapter is passed by for three reasons: one board shows
 * each operator what he may do, its page takes fonts from another host, and its template needs inline styles allowed.
 */
export type Board = {
  readonly routes: readonly AppControllerRoute[]
  /** Paths below the board that all answer the page: the browser's own router tells them apart. */
  readonly pagePaths: readonly string[]
  /** What a route works on, for one who may act and for one who may only look. */
  queues(mayManage: boolean): BullBoardQueues
  readonly uiConfig: UIConfig
  page(username: string): string
  /** The page's Content-Security-Policy. */
  policy(mayManage: boolean): string
  readonly files: ReadonlyMap<string, StaticFile>
}

/** What the board's lists of choices add to the page. */
const listStyle =
  '.base-ui-disable-scrollbar{scrollbar-width:none}.base-ui-disable-scrollbar::-webkit-scrollbar{display:none}'

/** Only those who may act get the editor of a job's data, which writes style sheets of its own. */
const policies = {
  view: contentPolicy(`style-src 'self' 'sha256-${createHash('sha256').update(listStyle).digest('base64')}'`),
  manage: contentPolicy("style-src 'self' 'unsafe-inline'"),
}

const uiConfig: UIConfig = {
  boardTitle: 'Gatewright queues',
  boardLogo: { path: iconPath, width: 28, height: 28 },
  favIcon: { default: iconPath, alternative: iconPath },
  // Links and facts that are no operator's business: the board's documentation, the store's version and memory.
  hideDocsLink: true,
  hideRedisDetails: true,
}

export function openBoard(queue: ApplyQueue): Board {
  const dist = join(dirname(fileURLToPath(import.meta.resolve('@bull-board/ui/package.json'))), 'dist')
  const adapters = { manage: adapt(queue, false), view: adapt(queue, true) }
  const { routes, entry } = takeApart(adapters.view)
  const byName = (adapter: BullMQAdapter): BullBoardQueues => new Map([[adapter.getName(), adapter]])
  const queues = { manage: byName(adapters.manage), view: byName(adapters.view) }
  const { styles, scripts } = assets(readFileSync(join(dist, 'index.ejs'), 'utf8'))
  return {
    routes,
    pagePaths: [entry.route].flat(),
    queues: (mayManage) => (mayManage ? queues.manage : queues.view),
    uiConfig,
    page: (username) => {
      const links = [{ text: `${username}: log out`, url: logoutPath }]
      const { params } = entry.handler({ basePath, uiConfig: { ...uiConfig, miscLinks: links } })
      return page(params.uiConfig ?? '', styles, scripts)
    },
    policy: (mayManage) => (mayManage ? policies.manage : policies.view),
    files: listFiles(join(dist, 'static')),
  }
}

/** The adapter works with either store, but is typed for queues on Redis alone. */
const adapt = (queue: ApplyQueue, readOnlyMode: boolean) =>
  new BullMQAdapter(queue as unknown as Queue, {
    readOnlyMode,
    description: 'One job per submission: it rings for the run that has the outcome.',
  })

/** Has the board describe itself to an adapter that only takes notes. */
function takeApart(queue: BullMQAdapter): { routes: readonly AppControllerRoute[]; entry: AppViewRoute } {
  let routes: AppControllerRoute[] = []
  let entry: AppViewRoute | undefined
  const notes: IServerAdapter = {
    setApiRoutes: (given) => {
      routes = given
      return notes
    },
    setEntryRoute: (given) => {
      entry = given
      return notes
    },
    setQueues: () => notes,
    setViewsPath: () => notes,
    setStaticPath: () => notes,
    setErrorHandler: () => notes,
    setUIConfig: () => notes,
  }
  createBullBoard({ queues: [queue], serverAdapter: notes, options: { uiConfig } })
  if (entry === undefined || routes.length === 0) throw new Error('@bull-board/api no longer describes its routes')
  return { routes, entry }
}

/** The names of its styles and scripts change with each version; its template has them. */
function assets(template: string): { styles: string; scripts: string } {
  const found = (pattern: RegExp) => (template.match(pattern) ?? []).join('\n')
  const styles = found(/<link href="static\/[\w./-]+" rel="stylesheet">/g)
  const scripts = found(/<script defer src="static\/[\w./-]+"><\/script>/g)
  if (styles === '' || scripts === '') throw new Error('@bull-board/ui no longer names its assets in dist/index.ejs')
  return { styles, scripts }
}

/** @param config JSON in which `<` and `>` are escaped */
const page = (config: string, styles: string, scripts: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<base href="${basePath}/">
<title>${uiConfig.boardTitle}</title>
<link rel="icon" type="image/svg+xml" href="${iconPath}">
${styles}
</head>
<body class="preload">
<script id="__UI_CONFIG__" type="application/json">${config}</script>
<div id="root"></div>
<noscript>The queues are shown by JavaScript, which this browser does not run.</noscript>
${scripts}
</body>
</html>
`
