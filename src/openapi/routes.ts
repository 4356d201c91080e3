import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Api } from '../http/api.ts'
import { sendTagged } from '../http/etag.ts'
import { policy, self, weightOf } from '../http/headers.ts'
import { icon } from '../http/icon.ts'
import type { Registry } from '../models/registry.ts'
import { basePath, docsPath, fileSchemaPath, schemaPath } from '../paths.ts'
import { type Describe, type DocumentForm, documentForms } from './describe.ts'
import { fileSchema } from './file-schema.ts'

/**
 * GET /api/v3/schema/: the API's own description, for programs. GET /docs/: the same for people. GET
 * /api/v3/blueprints/schema/: the JSON Schema of files, for editors. They show only facts of the source, and none of the
 * installation, so they need no token.
 */

const config = { permission: 'anyone', constant: true } as const

/** A `config` of its own for each route, because helmet writes into it. */
const page = () => ({ config: { ...config }, helmet: pagePolicy })

/** Swagger UI's style sheet draws its icons from `data:` addresses. */
const pagePolicy = policy({ 'script-src': self, 'style-src': self, 'img-src': [...self, 'data:'], 'connect-src': self })

const own = new URL('page/', import.meta.url)
const swaggerUi = new URL('./', import.meta.resolve('swagger-ui-dist/package.json'))

/** The files of the page, by name below `/docs/`. It needs two files of Swagger UI. */
const files = [
  ['', new URL('index.html', own), 'text/html'],
  ['page.css', new URL('page.css', own), 'text/css'],
  ['page.js', new URL('page.js', own), 'text/javascript'],
  ['swagger-ui.css', new URL('swagger-ui.css', swaggerUi), 'text/css'],
  ['swagger-ui-bundle.js', new URL('swagger-ui-bundle.js', swaggerUi), 'text/javascript'],
] as const

const types = { json: 'application/json; charset=utf-8', yaml: 'application/yaml; charset=utf-8' } as const

const schemaQuery = z.strictObject({ format: z.enum(documentForms).optional() })

export function docsRoutes(app: Api, registry: Registry, describe: Describe): void {
  // The description leaves itself out: it is no operation on stored data.
  const schema = { hide: true, querystring: schemaQuery, response: { 200: z.string() } }
  app.get(schemaPath, { config, schema, serializerCompiler: () => String }, async (request, reply) => {
    const form = request.query.format ?? formOf(request.headers.accept)
    const headers = { 'cache-control': 'no-cache', vary: 'Accept' }
    return sendTagged(reply, await describe(form), 'description', { type: types[form], headers })
  })
  let ofFiles: string | undefined
  const answer = { hide: true, response: { 200: z.string() } }
  const options = { config: { ...config }, schema: answer, serializerCompiler: () => String }
  app.get(fileSchemaPath, options, async (_, reply) => {
    ofFiles ??= JSON.stringify(fileSchema(registry))
    const headers = { 'cache-control': 'no-cache' }
    return sendTagged(reply, ofFiles, 'schema', { type: 'application/schema+json; charset=utf-8', headers })
  })
  const texts = new Map<string, Promise<string>>()
  for (const [name, file, type] of files)
    app.get(`${docsPath}${name}`, page(), async (_, reply) => {
      const text = await texts.getOrInsertComputed(name, () => readPage(name, file))
      const headers = { 'cache-control': name.startsWith('swagger-ui') ? 'public, max-age=86400' : 'no-cache' }
      return sendTagged(reply, text, 'file', { type: `${type}; charset=utf-8`, headers })
    })
  app.get(`${docsPath}icon.svg`, page(), async (_, reply) =>
    sendTagged(reply, icon, 'icon', { type: 'image/svg+xml', headers: { 'cache-control': 'no-cache' } }),
  )
}

const formOf = (accept = ''): DocumentForm =>
  weightOf('application/yaml', accept) > weightOf('application/json', accept) ? 'yaml' : 'json'

/** Our own files name addresses of this service. */
async function readPage(name: string, file: URL): Promise<string> {
  const text = await readFile(file, 'utf8')
  return name.startsWith('swagger-ui')
    ? text
    : text.replaceAll(/(["'>])\/(?=docs\/|api\/|admin\/|")/g, `$1${basePath}/`)
}
