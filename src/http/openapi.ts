import type { FastifyInstance } from 'fastify'
import type { Route } from './openapi/operation.ts'

/**
 * The API's own description, in OpenAPI 3.1: made of the routes as they are registered, their permissions and the very
 * schemas that validate. It is made when it is first asked for, and what makes it is loaded then: a start does not wait
 * for it, and a server that nobody asks does not hold it in memory.
 *
 * @param prefix below which routes are the API
 * @returns the document as JSON, the same text for the same routes
 */
export function describeRoutes(app: FastifyInstance, prefix: string): () => Promise<string> {
  const routes: Route[] = []
  app.addHook('onRoute', function (options) {
    if (!options.url.startsWith(`${prefix}/`) || options.method === 'HEAD' || options.schema?.hide === true) return
    const mediaTypes = ['application/json', 'application/yaml'].filter((type) => this.hasContentTypeParser(type))
    routes.push({ options, mediaTypes })
  })
  let text: Promise<string> | undefined
  return () => {
    text ??= import('./openapi/document.ts').then(({ toDocument }) => JSON.stringify(toDocument(routes, prefix)))
    return text
  }
}
