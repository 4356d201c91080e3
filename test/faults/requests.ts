import { type Target, unansweredMs } from './clients.ts'

/** Any request of a test, as its client saw it. */

export type Got = {
  /** null: the connection was lost. */
  readonly status: number | null
  readonly headers: Headers
  readonly text: string
}

export const applyPath = '/core/transactional/applications/'
export const blueprintsPath = '/blueprints/'

/** @param path below `/api/v3`, or a `Location` */
export async function send(
  { url, token }: Target,
  method: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<Got> {
  const place = path.startsWith('/api/') ? path : `/api/v3${path}`
  try {
    const answer = await fetch(`${url}${place}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(unansweredMs),
    })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  } catch (error) {
    return { status: null, headers: new Headers(), text: String((error as Error).cause ?? error) }
  }
}

export const isApplied = ({ status, text }: Got): boolean => status === 200 && text.startsWith('{"applied":true')

/** The id of the run that an answer names. */
export const runOf = ({ headers }: Got): string =>
  (headers.get('location') ?? headers.get('content-location') ?? '').split('/').at(-2) ?? ''
