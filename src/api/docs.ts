import { createReadStream } from 'node:fs'
import { z } from 'zod'
import type { Api } from '../http/api.ts'
import { docsHeaders, docsPath, ownFiles } from '../http/docs-page.ts'
import { apiPrefix } from '../http/paths.ts'

/**
 * GET /api/v3/schema/: the API's own description, for machines; GET /docs/: the same for people. Both tell what this
 * source tells, and nothing of the installation: they take no token.
 */

const config = { permission: 'anyone' } as const
const schemaPath = `${apiPrefix}/schema/`

/** The files of Swagger UI that the page asks for, by type. */
const swaggerUi = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
} as const

export function docsRoutes(app: Api, describe: () => Promise<string>): void {
  // It is no operation on anything that is kept: the description leaves itself out.
  const schema = { hide: true, response: { 200: z.string() } }
  app.get(schemaPath, { config, schema, serializerCompiler: () => String }, async (_, reply) =>
    reply
      .type('application/json; charset=utf-8')
      .header('Cache-Control', 'no-cache')
      .send(await describe()),
  )

  for (const [name, { type, text }] of ownFiles(schemaPath)) {
    app.get(`${docsPath}/${name}`, { config }, async (_, reply) => reply.headers(docsHeaders).type(type).send(text))
  }
  // The package holds the files; its plugin would hold modules in memory for a page that is seldom read.
  const folder = new URL('static/', import.meta.resolve('@fastify/swagger-ui'))
  for (const [name, type] of Object.entries(swaggerUi)) {
    app.get(`${docsPath}/${name}`, { config }, async (_, reply) =>
      reply
        .headers({ ...docsHeaders, 'Cache-Control': 'public, max-age=86400' })
        .type(type)
        .send(createReadStream(new URL(name, folder))),
    )
  }
}
