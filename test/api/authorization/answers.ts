import type { Answer } from '../../support/asker.ts'
import type { Row } from './matrix.ts'

/** Answers in the words of the table; a wrong answer is none of them. */

/** A prepared request of one actor. */
export type Ask = {
  readonly method: string
  readonly url: string
  /** A text is sent as it is. */
  readonly body?: object | string
  readonly headers?: Readonly<Record<string, string>>
  /** The URL of a missing object: a 404 must be the same. */
  readonly missing?: string
  /** The body with another guess: a 403 must be the same. */
  readonly otherGuess?: string
  /** Whose objects the answer shows. */
  readonly shows?: (answer: Answer) => string
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const json = 'application/json; charset=utf-8'

const codes: Readonly<Record<number, string>> = {
  401: 'not_authenticated',
  403: 'permission_denied',
  404: 'not_found',
  409: 'conflict',
  410: 'key_gone',
}

/** The name and the day of an expired token go before the rest. */
export const saysExpired = 'The token \\\\"[-\\w]+\\\\" expired on \\d{4}-\\d\\d-\\d\\d\\. '
const unauthenticated = new RegExp(
  `^{"detail":"(${saysExpired})?Send a valid access token: Authorization: Bearer <ACCESS_TOKEN>\\.","code":"not_authenticated"}$`,
)

/** @returns `403`, `200 own`, ...; followed by the whole answer when it is wrong */
export function outcomeOf(answer: Answer, row: Row, { method, shows }: Ask): string {
  const { status, text, headers } = answer
  const error = errorOf(answer, row, method)
  if (error !== undefined) return `${status}, but ${error}: ${JSON.stringify(headers)} ${text}`
  if (status < 300) return [status, method === 'HEAD' ? undefined : shows?.(answer)].filter(Boolean).join(' ')
  return String(status)
}

function errorOf({ status, headers, text, json: body }: Answer, { member }: Row, method: string): string | undefined {
  if (status === 204) return text === '' && headers['content-type'] === undefined ? undefined : 'it has a body'
  if (headers['content-type'] !== json) return 'it is not JSON'
  if (headers['x-request-id'] === undefined) return 'it has no request id'
  if ((status === 401) !== (headers['www-authenticate'] === 'Bearer')) return 'WWW-Authenticate goes with 401'
  if (method === 'HEAD') return text === '' ? undefined : 'it has a body'
  if (status === 401) return unauthenticated.test(text) ? undefined : 'it is not the one answer'
  if (!isObject(body)) return 'it is no object'
  if (status < 300) return undefined
  if (status === 400) return isErrorOf(member, body) ? undefined : 'it does not name the member alone'
  const { detail, code, ...more } = body
  if (typeof detail !== 'string' || detail === '' || Object.keys(more).length > 0) return 'it is not {detail, code}'
  return code === codes[status] || code === 'route_gone' ? undefined : 'the code is another'
}

/** The exchange has the `error` of OAuth beside the others; no member is called so. */
function isErrorOf(member: string, { code, error, ...errors }: Readonly<Record<string, unknown>>): boolean {
  return (
    code === 'invalid' &&
    [undefined, 'invalid_request'].includes(error as string) &&
    Object.keys(errors).join() === member
  )
}
