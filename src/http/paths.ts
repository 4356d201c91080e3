/** Where the API stands, and the paths that answers point to. */
export const apiPrefix = '/api/v3'

export const runPath = (id: string): string => `${apiPrefix}/blueprints/runs/${id}/`
