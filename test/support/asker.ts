import type { InjectOptions } from 'fastify'
import type { ErrorDetail } from '../../src/errors.ts'
import type { Api } from '../../src/http/api.ts'
import { checked } from './problem.ts'

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  /** The body, where it is JSON. Of a 400 without `errors`, which say the same as its fields: that is checked here. */
  readonly json: unknown
  /** Of a 400: each error with its code and place. */
  readonly errors: readonly ErrorDetail[]
}

type Headers = { ifNoneMatch?: string; headers?: Record<string, string> }

/** A client with a token, in front of the API. */
export type Asker = {
  get(path: string, options?: Headers): Promise<Answer>
  /** @param body a text or bytes are sent as they are, anything else as JSON */
  put(path: string, body: unknown, options?: Headers): Promise<Answer>
  send(request: InjectOptions & { method: string; url: string }): Promise<Answer>
}

export const applyPath = '/api/v3/core/transactional/applications/'

/** @param token null: none is sent */
export function askAs(app: Api, token: string | null): Asker {
  async function send({ headers, ...request }: InjectOptions): Promise<Answer> {
    const bearer = token === null ? {} : { authorization: `Bearer ${token}` }
    const all = { ...request, headers: { ...bearer, ...headers } }
    const answer = await app.inject(all)
    const texts = Object.entries(answer.headers).map(([name, value]) => [
      name,
      value === undefined ? undefined : String(value),
    ])
    const { json, errors } = checked(answer.statusCode, parsed(answer.body))
    return { status: answer.statusCode, headers: Object.fromEntries(texts), text: answer.body, json, errors }
  }
  return {
    send,
    get: (url, { headers = {} } = {}) => send({ method: 'GET', url, headers }),
    put: (url, body, { ifNoneMatch, headers = {} } = {}) =>
      send({
        method: 'PUT',
        url,
        headers: {
          'content-type': 'application/json',
          ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
          ...headers,
        },
        payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      }),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
