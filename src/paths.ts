/** The path of the API, the paths in its answers, and those that the first page names. */
export const apiPrefix = '/api/v3'

export const runPath = (id: string): string => `${apiPrefix}/blueprints/runs/${id}/`

export const applyPath = `${apiPrefix}/core/transactional/applications/`

export const homePath = '/'
export const docsPath = '/docs/'
export const schemaPath = `${apiPrefix}/schema/`
export const dashboardPath = '/admin/'
export const readyPath = '/-/health/ready/'
export const faviconPath = '/favicon.svg'
