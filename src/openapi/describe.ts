import type { FastifyInstance } from 'fastify'
import type { Route } from './operation.ts'

/**
 * The API's own description in OpenAPI 3.1, made from the routes as they are registered: their permissions, and the
 * schemas that validate. The first request for it makes it, and loads the code for that. A start does not wait for it,
 * and a server that is never asked does not hold it in memory (docs/adr/0024-openapi-by-fastify-swagger.md).
 *
 * @param prefix routes below it are the API
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
    text ??= import('./document.ts').then(async ({ toDocument }) => JSON.stringify(await toDocument(routes, prefix)))
    return text
  }
}
