import type { FastifyInstance } from 'fastify'
import { mediaTypesOf } from '../http/body.ts'
import type { Route } from './operation.ts'

export const documentForms = ['json', 'yaml'] as const
export type DocumentForm = (typeof documentForms)[number]

/** @returns the document, the same text for the same routes */
export type Describe = (form: DocumentForm) => Promise<string>

/**
 * The API's own description in OpenAPI 3.1, made from the routes as they are registered: their permissions, and the
 * schemas that validate. The first request for it makes it, and loads the code for that. A start does not wait for it,
 * and a server that is never asked does not hold it in memory (docs/adr/0137-openapi-by-zod.md).
 *
 * @param prefix routes below it are the API
 */
export function describeRoutes(app: FastifyInstance, prefix: string): Describe {
  const routes: Route[] = []
  app.addHook('onRoute', function (options) {
    if (!options.url.startsWith(`${prefix}/`) || options.method === 'HEAD' || options.schema?.hide === true) return
    routes.push({ options, mediaTypes: mediaTypesOf(this) })
  })
  const texts: Partial<Record<DocumentForm, Promise<string>>> = {}
  const asJson = () => import('./document.ts').then(({ toDocument }) => toDocument(routes)).then(JSON.stringify)
  const asYaml = async () => {
    const [{ printValue }, json] = await Promise.all([import('../document/yaml.ts'), describe('json')])
    return printValue(JSON.parse(json))
  }
  const describe: Describe = (form) => {
    texts[form] ??= form === 'json' ? asJson() : asYaml()
    return texts[form]
  }
  return describe
}
