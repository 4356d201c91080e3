import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Api } from '../../src/http/api.ts'

/** The API's own description, as a stranger reads it: asked for over HTTP, and believed. */

export type Json = Readonly<Record<string, unknown>>
export type Content = {
  readonly schema: Json
  readonly example?: unknown
  readonly examples?: Record<string, { value: unknown }>
}
export type Answered = {
  readonly description: string
  readonly headers: Json
  /** Absent: the answer has no body. */
  readonly content?: Record<string, Content>
}
export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description?: string
  readonly style?: string
  readonly explode?: boolean
  readonly schema: Json
}
type Written = {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly 'x-permission': readonly string[]
  readonly 'x-also-needs'?: readonly { readonly permission: readonly string[]; readonly when: string }[]
  readonly parameters?: readonly (Parameter | { $ref: string })[]
  readonly requestBody?: { readonly content: Record<string, Content> }
  readonly responses: Record<string, Answered | { $ref: string }>
}
export type Document = {
  readonly openapi: string
  readonly paths: Record<string, Record<string, Written>>
  readonly components: {
    readonly schemas: Record<string, Json>
    readonly responses: Record<string, Answered>
    readonly parameters: Record<string, Parameter>
    readonly headers: Record<string, Json>
  }
}

export type Operation = Omit<Written, 'parameters' | 'responses'> & {
  /** `GET` */
  readonly method: string
  /** `/api/v3/core/groups/{group_uuid}/` */
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly responses: Record<string, Answered>
}

/** What was asked, and what came back. */
export type Exchange = {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly headers: Json
  readonly text: string
}

export type Description = {
  readonly document: Document
  readonly operations: readonly Operation[]
  /** What an example or a body breaks of its schema; empty: nothing. */
  errorsOf(schema: Json, value: unknown): string[]
  /** What an answer has that the description does not say. */
  validate(operation: Operation, answer: Pick<Exchange, 'status' | 'headers' | 'text'>): string[]
}

/** Headers of the connection, of proxies and of browsers: no program reads them. */
const ofHttp = new Set([
  ...['x-accel-buffering', 'connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'],
  ...['content-security-policy', 'cross-origin-opener-policy', 'cross-origin-resource-policy', 'origin-agent-cluster'],
  ...['referrer-policy', 'x-content-type-options', 'x-dns-prefetch-control', 'x-download-options', 'x-frame-options'],
  ...['x-permitted-cross-domain-policies', 'x-xss-protection'],
])

export const schemaPath = '/api/v3/schema/'

/** @returns finds an operation by its id */
export const findIn =
  ({ operations }: Description) =>
  (id: string): Operation => {
    const found = operations.find(({ operationId }) => operationId === id)
    if (found === undefined) throw new Error(`there is no operation ${id}`)
    return found
  }

export async function readDescription(app: Api): Promise<Description> {
  const { body, statusCode } = await app.inject({ url: schemaPath })
  if (statusCode !== 200) throw new Error(`${schemaPath} answers ${statusCode}: ${body}`)
  return describe(JSON.parse(body))
}

export function describe(document: Document): Description {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, written]) => resolved(document, method.toUpperCase(), path, written)),
  )
  const errorsOf = validatorOf(document)
  return {
    document,
    operations,
    errorsOf,
    validate: (operation, { status, headers, text }) => {
      const answered = operation.responses[status]
      if (answered === undefined) return [`${status} is not described: ${text.slice(0, 300)}`]
      const named = document.components.headers
      const isRequired = (each: unknown) =>
        named[
          String((each as Json).$ref)
            .split('/')
            .at(-1) ?? ''
        ]?.required !== false
      const described = new Set(Object.keys(answered.headers).map((name) => name.toLowerCase()))
      const unknown = Object.keys(headers).filter(
        (name) => headers[name] !== undefined && !described.has(name) && !ofHttp.has(name),
      )
      const missing = Object.entries(answered.headers)
        .filter(([name, each]) => isRequired(each) && headers[name.toLowerCase()] === undefined)
        .map(([name]) => name)
      const errors = [
        ...missing.map((name) => `${status} has no header ${name}`),
        ...unknown.map((name) => `${status} has the header ${name}, which is not described`),
      ]
      const [type = ''] = String(headers['content-type']).split(';')
      if (answered.content === undefined) return text === '' ? errors : [...errors, `${status} has a body`]
      const content = answered.content[type]
      if (content === undefined) return [...errors, `${status} is not described as ${type}`]
      return [
        ...errors,
        ...errorsOf(content.schema, type === 'application/json' ? JSON.parse(text) : text).map(
          (error) => `${status}: ${error}`,
        ),
      ]
    },
  }
}

function resolved(document: Document, method: string, path: string, written: Written): Operation {
  const resolve = <Target>(found: Target | { $ref: string }): Target => {
    if (typeof found !== 'object' || found === null || !('$ref' in found)) return found as Target
    const [, ...steps] = found.$ref.split('/')
    return steps.reduce<unknown>((node, step) => (node as Json)[step], document) as Target
  }
  const { parameters = [], responses, ...rest } = written
  return {
    ...rest,
    method,
    path,
    parameters: parameters.map((each) => resolve<Parameter>(each)),
    responses: Object.fromEntries(Object.entries(responses).map(([status, each]) => [status, resolve<Answered>(each)])),
  }
}

/** JSON Schema 2020-12, with formats; what OpenAPI adds to it (`example`, `xml`, ...) is not checked. */
function validatorOf({ components }: Document): Description['errorsOf'] {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true })
  addFormats.default(ajv)
  const compiled = new Map<Json, ValidateFunction>()
  return (schema, value) => {
    const validate = compiled.get(schema) ?? ajv.compile({ ...schema, components })
    compiled.set(schema, validate)
    if (validate(value)) return []
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`,
    )
  }
}
