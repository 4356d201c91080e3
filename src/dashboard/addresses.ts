import { dashboardPath } from '../paths.ts'

/** The addresses of the operators' pages. */

/** What is going on now. The session's cookie holds below it. */
export const nowPath = dashboardPath
export const cookiePath = nowPath.slice(0, -1)
export const loginPath = `${nowPath}login/`
export const logoutPath = `${nowPath}logout/`
export const workersPath = `${nowPath}workers/`
export const runsPath = `${nowPath}runs/`
export const runPagePath = (id: string): string => `${runsPath}${id}/`
export const refusalsPath = `${nowPath}refusals/`
export const auditPath = `${nowPath}audit/`
export const applicationsPath = `${nowPath}applications/`
/** @param slug as it is; `:slug` for the route */
export const applicationPath = (slug: string): string =>
  `${applicationsPath}${slug.startsWith(':') ? slug : encodeURIComponent(slug)}/`
/** Of two states of an application, how they differ. @param slug as above */
export const comparePath = (slug: string): string => `${applicationPath(slug)}compare/`
export const documentPath = (id: string): string => `${runPagePath(id)}document/`
export const differencesPath = (id: string): string => `${runPagePath(id)}differences/`
export const rollBackPath = (id: string): string => `${runPagePath(id)}roll-back/`
export const timesPath = `${nowPath}times/`
/** Of an act: the page that asks, and what its form is sent to. */
export const actPath = (name: string): string => `${nowPath}${name}/`
/** The stream of events, which the pages' script follows. */
export const eventsPath = `${nowPath}events/`
export const assetsPath = `${nowPath}assets/`
export const iconPath = `${nowPath}icon.svg`
/** Bull Board has no slash at the end of its address. */
export const boardPath = `${nowPath}queues`

const origin = 'http://dashboard.invalid'
const maxLength = 2_000

/**
 * Where a login leads: an address below /admin/ that was asked for before, or else the first page. Anything that a browser
 * could take for another host is not followed.
 *
 * @param asked of the query string, which anyone may have made
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

/** A login that leads to the login would ask again, a choice leads back to a page, and a stream is no page. */
const isOfSession = (path: string) =>
  [loginPath, logoutPath, eventsPath, timesPath].some((each) => `${path}/`.startsWith(each))

export const loginFor = (address: string): string => {
  const next = nextOf(address)
  return next === nowPath ? loginPath : `${loginPath}?next=${encodeURIComponent(next)}`
}
