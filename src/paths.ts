import { readBasePath } from './config.ts'

/** The path of the API, the paths in its answers, and those that the first page names. */

/**
 * Where a proxy has the service; empty at the root. All paths begin with it, those of the routes too, so that an address is
 * the same in a route, a link, a redirect and a cookie. A request without it gets it (`withBasePath`).
 */
export const basePath = readBasePath()

/** Below the base path. */
export const versionPath = '/api/v3'
export const apiPrefix = `${basePath}${versionPath}`

export const runPath = (id: string): string => `${apiPrefix}/blueprints/runs/${id}/`

export const applyPath = `${apiPrefix}/core/transactional/applications/`

export const homePath = `${basePath}/`
export const docsPath = `${basePath}/docs/`
export const schemaPath = `${apiPrefix}/schema/`
export const fileSchemaPath = `${apiPrefix}/blueprints/schema/`
export const dashboardPath = `${basePath}/admin/`
/** Health and metrics: for programs beside the service, which need not know the base path. */
export const probesPath = `${basePath}/-/`
export const readyPath = `${probesPath}health/ready/`
export const faviconPath = `${basePath}/favicon.svg`

/** The address of a request as the routes have it: some proxies cut the base path off, and probes do not send it. */
export const withBasePath = (url: string, base = basePath): string =>
  !url.startsWith('/') || url === base || url.startsWith(`${base}/`) || url.startsWith(`${base}?`) ? url : base + url
