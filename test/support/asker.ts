import type { InjectOptions } from 'fastify'
import { expect } from 'vitest'
import type { ErrorDetail } from '../../src/errors.ts'
import type { Api } from '../../src/http/api.ts'
import { isObject } from '../../src/json-object.ts'
import type { Run } from '../../src/views/run.ts'
import { type Changes, type Kind, named } from './examples.ts'
import { checked } from './problem.ts'

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  /** The body, where it is JSON. `errors` of a refusal stand apart: they say the same as the rest, which is checked. */
  readonly json: unknown
  /** The errors of a refusal, each with its code and place. */
  readonly errors: readonly ErrorDetail[]
  /** The lines that an apply or a plan reports. Empty in other answers. */
  readonly logs: readonly string[]
  /** The sentence of a refusal, or ''. */
  readonly detail: string
  /** Its tag, or ''. */
  readonly etag: string
  /** The path of the run that it names, or ''. */
  readonly run: string
  /** The key of that run, or ''. */
  readonly runId: string
}

/** An entry of a document. */
export type Entry = {
  readonly model: string
  readonly id?: string
  readonly state?: string
  readonly was?: string
  readonly owner?: string | null
  readonly retain?: boolean
  readonly conditions?: readonly unknown[]
  readonly identifiers: object
  readonly attrs?: object
}

/** Headers by short names, and others. */
export type AskOptions = {
  ifMatch?: string
  ifNoneMatch?: string
  owner?: string
  stack?: string
  allow?: string
  prefer?: string
  headers?: Record<string, string>
}

/** `query` without its question mark, `name` of the document, `members` beside its name and entries. */
type DocumentOptions = AskOptions & { query?: string; name?: string; members?: object }

/** `query` without its question mark, and fields that differ from the example. */
export type SubmitOptions = AskOptions & Changes & { query?: string }

/** A client with a token, in front of the API. */
export type Asker = {
  get(path: string, options?: AskOptions): Promise<Answer>
  /** @param body a text or bytes are sent as they are, anything else as JSON */
  put(path: string, body: unknown, options?: AskOptions): Promise<Answer>
  /** Sends no body when it is undefined. */
  post(path: string, body?: unknown, options?: AskOptions): Promise<Answer>
  patch(path: string, body: unknown, options?: AskOptions): Promise<Answer>
  delete(path: string, options?: AskOptions): Promise<Answer>
  send(request: InjectOptions & { method: string; url: string }): Promise<Answer>
  /** Submits the shipped example of a kind under a name of its own. */
  submit(kind: Kind, name: string, options?: SubmitOptions): Promise<Answer>
  /** Applies a document. @param content its entries, or all of it as YAML */
  apply(content: readonly Entry[] | string | Buffer, options?: DocumentOptions): Promise<Answer>
  /** Plans a document. */
  plan(content: readonly Entry[] | string, options?: DocumentOptions): Promise<Answer>
  /** The run that an answer names. */
  runOf(answer: Answer): Promise<Run>
}

/** Expects this status, and a body with these fields. */
export async function answered(status: number, asked: Answer | Promise<Answer>, json?: object): Promise<Answer> {
  const answer = await asked
  expect(answer.status, answer.text).toBe(status)
  if (json !== undefined) expect(answer.json).toMatchObject(json)
  return answer
}

/** Expects that a document or a submission is applied. */
export async function applied(asked: Answer | Promise<Answer>): Promise<Answer> {
  return answered(200, asked, { applied: true })
}

export const applyPath = '/api/v3/core/transactional/applications/'
export const documentsPath = '/api/v3/blueprints/'

/** @param token null: none is sent */
export function askAs(app: Pick<Api, 'inject'>, token: string | null): Asker {
  async function send({ headers, ...request }: InjectOptions): Promise<Answer> {
    const bearer = token === null ? {} : { authorization: `Bearer ${token}` }
    const all = { ...request, headers: { ...bearer, ...headers } }
    const answer = await app.inject(all)
    const texts = Object.entries(answer.headers).map(([name, value]) => [
      name,
      value === undefined ? undefined : String(value),
    ])
    const { json, errors } = checked(answer.statusCode, parsed(answer.body))
    const { logs, detail } = isObject(json) ? json : {}
    const named: Answer['headers'] = Object.fromEntries(texts)
    const run = named['content-location'] ?? named.location ?? ''
    return {
      status: answer.statusCode,
      headers: named,
      text: answer.body,
      json,
      errors,
      logs: Array.isArray(logs) ? logs : [],
      detail: typeof detail === 'string' ? detail : '',
      etag: named.etag ?? '',
      run,
      runId: run.split('/').at(-2) ?? '',
    }
  }

  const sendBody = (method: 'PUT' | 'POST' | 'PATCH', url: string, body: unknown, options?: AskOptions) =>
    body === undefined
      ? send({ method, url, headers: headersOf(options) })
      : send({
          method,
          url,
          headers: { 'content-type': 'application/json', ...headersOf(options) },
          payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
        })

  const apply: Asker['apply'] = (content, { query = '', name = 'test', members, headers, ...options } = {}) => {
    const url = query === '' ? documentsPath : `${documentsPath}?${query}`
    if (!Array.isArray(content)) {
      const yaml = { 'content-type': 'application/yaml' }
      return sendBody('PUT', url, content, { ...options, headers: { ...yaml, ...headers } })
    }
    const document = { version: 1, metadata: { name }, ...members, entries: content }
    return sendBody('PUT', url, document, { ...options, headers: { ...headers } })
  }

  return {
    send,
    get: (url, options) => send({ method: 'GET', url, headers: headersOf(options) }),
    put: (url, body, options) => sendBody('PUT', url, body, options),
    post: (url, body, options) => sendBody('POST', url, body, options),
    patch: (url, body, options) => sendBody('PATCH', url, body, options),
    delete: (url, options) => send({ method: 'DELETE', url, headers: headersOf(options) }),
    submit: async (kind, name, { query = '', app, provider, ...options } = {}) => {
      const url = query === '' ? applyPath : `${applyPath}?${query}`
      return sendBody('PUT', url, await named(kind, name, { app, provider }), options)
    },
    apply,
    plan: (content, { query, ...options } = {}) =>
      apply(content, { ...options, query: query === undefined ? 'dry_run=true' : `dry_run=true&${query}` }),
    runOf: async ({ run }) => Object((await send({ method: 'GET', url: run })).json),
  }
}

const headersOf = ({
  ifMatch,
  ifNoneMatch,
  owner,
  stack,
  allow,
  prefer,
  headers,
}: AskOptions = {}): Record<string, string> => ({
  ...(ifMatch !== undefined && { 'if-match': ifMatch }),
  ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
  ...(owner !== undefined && { 'gatewright-owner': owner }),
  ...(stack !== undefined && { 'gatewright-stack': stack }),
  ...(allow !== undefined && { 'gatewright-allow': allow }),
  ...(prefer !== undefined && { prefer }),
  ...headers,
})

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
