/** The path of the API, and the paths in its answers. */
export const apiPrefix = '/api/v3'

export const runPath = (id: string): string => `${apiPrefix}/blueprints/runs/${id}/`
