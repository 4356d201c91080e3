import { readBasePath } from './config.ts'

/** The path of the API, the paths in its answers, and those that the first page names. */

/**
 * The path under which a proxy has the service; empty at the root. All paths begin with it, those of the routes too, so that an
 * address is the same in a route, a link, a redirect and a cookie. `withBasePath` adds it to a request without it.
 */
export const basePath = readBasePath()

/** The path of the API below the base path. */
export const versionPath = '/api/v3'
export const apiPrefix = `${basePath}${versionPath}`

export const runPath = (id: string): string => `${apiPrefix}/blueprints/runs/${id}/`

export const applyPath = `${apiPrefix}/core/transactional/applications/`

export const homePath = `${basePath}/`
export const docsPath = `${basePath}/docs/`
export const schemaPath = `${apiPrefix}/schema/`
export const fileSchemaPath = `${apiPrefix}/blueprints/schema/`
export const dashboardPath = `${basePath}/admin/`
export const loginPath = `${dashboardPath}login/`
/** The path of health and metrics, for programs beside the service, which need not know the base path. */
export const probesPath = `${basePath}/-/`
export const readyPath = `${probesPath}health/ready/`
export const appliesPath = `${probesPath}health/applies/`
export const faviconPath = `${basePath}/favicon.svg`

/** The address of a request as the routes have it: some proxies remove the base path, and probes do not send it. */
export const withBasePath = (url: string, base = basePath): string =>
  !url.startsWith('/') || url === base || url.startsWith(`${base}/`) || url.startsWith(`${base}?`) ? url : base + url
