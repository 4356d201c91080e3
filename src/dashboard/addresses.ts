import { z } from 'zod'
import { dashboardPath, loginPath } from '../paths.ts'
import { applyQueue, jobId } from '../queue/define.ts'

/** The page of the current state. The session's cookie holds below it. */
export const nowPath = dashboardPath
export const cookiePath = nowPath.slice(0, -1)
export { loginPath }
export const logoutPath = `${nowPath}logout/`
export const workersPath = `${nowPath}workers/`
export const runsPath = `${nowPath}runs/`
export const runPagePath = (id: string): string => `${runsPath}${id}/`
export const refusalsPath = `${nowPath}refusals/`
export const retentionPath = `${nowPath}retention/`
export const tokensPath = `${nowPath}tokens/`
export const auditPath = `${nowPath}audit/`
export const applicationsPath = `${nowPath}applications/`
/** @param slug unescaped; `:slug` for the route */
export const applicationPath = (slug: string): string =>
  `${applicationsPath}${slug.startsWith(':') ? slug : encodeURIComponent(slug)}/`
export const documentPath = (id: string): string => `${runPagePath(id)}document/`
export const rollBackPath = (id: string): string => `${runPagePath(id)}roll-back/`
export const searchPath = `${nowPath}search/`
export const timesPath = `${nowPath}times/`
/** The address of an act: the page that confirms it, and the target of its form. */
export const actPath = (name: string): string => `${nowPath}${name}/`
/** The pages' script waits here for a change. */
export const changesPath = `${nowPath}changes/`
export const assetsPath = `${nowPath}assets/`
export const iconPath = `${nowPath}icon.svg`
/** Bull Board has no slash at the end of its address. */
export const boardPath = `${nowPath}queues`
/** The job of a run on the board, while the queue keeps it. */
export const jobPath = ({ id, attempts }: { readonly id: string; readonly attempts: number }): string =>
  `${boardPath}/queue/${applyQueue.name}/${jobId(id, attempts)}`

/** The address of a page with a query. Empty values are left out. */
export function withQuery(path: string, values: Readonly<Record<string, string | number | null | undefined>>): string {
  const sent = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== '')
  return sent.length === 0 ? path : `${path}?${new URLSearchParams(sent.map(([name, value]) => [name, String(value)]))}`
}

const origin = 'http://dashboard.invalid'
const maxLength = 2_000

/**
 * The page to which a login leads: an address below /admin/ that was requested before, or else the first page. An address that a
 * browser could take for another host is ignored.
 *
 * @param asked a value of the query string, which anyone may have made
 */
export function nextOf(asked: unknown): string {
  if (typeof asked !== 'string' || asked.length > maxLength) return nowPath
  // biome-ignore lint/suspicious/noControlCharactersInRegex: browsers ignore some of them in addresses.
  if (!asked.startsWith(nowPath) || /[\\\u0000-\u0020\u007f-\uffff]/.test(asked)) return nowPath
  if (!URL.canParse(asked, origin)) return nowPath
  const { origin: found, pathname, search } = new URL(asked, origin)
  const isBelow = found === origin && pathname.startsWith(nowPath) && !pathname.includes('//')
  return isBelow && !isOfSession(pathname) ? `${pathname}${search}` : nowPath
}

/** The query of a page that leads on. Any value is accepted, even a list: one that is no address leads to the first page. */
export const nextQuery = z.strictObject({ next: z.unknown().optional().transform(nextOf) })

/** A login that leads to the login would loop, a choice leads back to a page, and a wait is no page. */
const isOfSession = (path: string) =>
  [loginPath, logoutPath, changesPath, timesPath].some((each) => `${path}/`.startsWith(each))

export const loginFor = (address: string): string => {
  const next = nextOf(address)
  return next === nowPath ? loginPath : `${loginPath}?next=${encodeURIComponent(next)}`
}
