import { createReadStream } from 'node:fs'
import { z } from 'zod'
import type { Api } from '../http/api.ts'
import { policy, self } from '../http/headers.ts'
import { icon } from '../http/icon.ts'
import { apiPrefix } from '../paths.ts'

/**
 * GET /api/v3/schema/: the API's own description, for programs. GET /docs/: the same for people. Both show what the
 * source says, and nothing of the installation, so they need no token.
 */

const config = { permission: 'anyone' } as const

/** A `config` of its own for each route, because helmet writes into it. */
const page = () => ({ config: { ...config }, helmet: pagePolicy })

/** Swagger UI's style sheet draws its icons from `data:` addresses. */
const pagePolicy = policy({ 'script-src': self, 'style-src': self, 'img-src': [...self, 'data:'], 'connect-src': self })

const own = new URL('page/', import.meta.url)
const swaggerUi = new URL('./', import.meta.resolve('swagger-ui-dist/package.json'))

/** The files of the page, by name below `/docs/`. Of Swagger UI it needs two. */
const files = [
  ['', new URL('index.html', own), 'text/html'],
  ['page.css', new URL('page.css', own), 'text/css'],
  ['page.js', new URL('page.js', own), 'text/javascript'],
  ['swagger-ui.css', new URL('swagger-ui.css', swaggerUi), 'text/css'],
  ['swagger-ui-bundle.js', new URL('swagger-ui-bundle.js', swaggerUi), 'text/javascript'],
] as const

export function docsRoutes(app: Api, describe: () => Promise<string>): void {
  // The description leaves itself out: it is no operation on stored data.
  const schema = { hide: true, response: { 200: z.string() } }
  app.get(`${apiPrefix}/schema/`, { config, schema, serializerCompiler: () => String }, async (_, reply) =>
    reply
      .type('application/json; charset=utf-8')
      .header('Cache-Control', 'no-cache')
      .send(await describe()),
  )
  for (const [name, file, type] of files)
    app.get(`/docs/${name}`, page(), async (_, reply) =>
      reply
        .type(`${type}; charset=utf-8`)
        .header('Cache-Control', name.startsWith('swagger-ui') ? 'public, max-age=86400' : 'no-cache')
        .send(createReadStream(file)),
    )
  app.get('/docs/icon.svg', page(), async (_, reply) =>
    reply.type('image/svg+xml').header('Cache-Control', 'no-cache').send(icon),
  )
}
