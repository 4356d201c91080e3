import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { InjectOptions } from 'fastify'
import type { Api } from '../../src/http/api.ts'
import { atEnd } from './at-end.ts'
import { until } from './until.ts'

/** A message as a browser's EventSource dispatches it. */
export type Received = { readonly event: string; readonly id: string; readonly data: Record<string, unknown> }

/** A reader of a stream of events, over HTTP. */
export type EventReader = {
  readonly status: number
  readonly headers: Headers
  readonly events: readonly Received[]
  /** The body, of an answer that is no stream. */
  readonly json: unknown
  /** The last id of any block, as a browser sends it. */
  lastId(): string
  comments(): number
  readonly ended: Promise<void>
  isOver(): boolean
  /** Waits for events of this name (and run), at least so many. */
  got(name: string, options?: { run?: string; count?: number; withinMs?: number }): Promise<Received[]>
  close(): void
}

/** Parses the text of a stream, block by block. */
export function eventParser() {
  const events: Received[] = []
  let [rest, id, comments] = ['', '', 0]
  const onBlock = (block: string) => {
    const fields = block.split('\n').map((line) => /^([^:]*):? ?(.*)$/.exec(line) ?? [])
    const all = (name: string) => fields.filter(([, each]) => each === name).map(([, , value = '']) => value)
    comments += block.split('\n').filter((line) => line.startsWith(':')).length
    id = all('id').at(-1) ?? id
    const data = all('data').join('\n')
    if (data !== '') events.push({ event: all('event').at(-1) ?? 'message', id, data: JSON.parse(data) })
  }
  return {
    events,
    lastId: () => id,
    comments: () => comments,
    write(text: string): void {
      rest += text
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
        onBlock(rest.slice(0, end))
        rest = rest.slice(end + 2)
      }
    },
  }
}

/** Opens a stream. It is closed at the end of the file. */
export async function readEvents(
  url: string,
  { token, lastEventId, headers = {} }: { token: string; lastEventId?: string; headers?: Record<string, string> },
): Promise<EventReader> {
  const abort = new AbortController()
  atEnd(() => abort.abort())
  const response = await fetch(url, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      ...headers,
    },
    signal: abort.signal,
  })
  const parser = eventParser()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  let isOver = false
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) parser.write(decoder.decode(chunk, { stream: true }))
  }
  const json: unknown = isStream || response.status === 204 ? undefined : await response.json()
  const ended = (isStream ? read() : Promise.resolve())
    .catch(() => {})
    .then(() => {
      isOver = true
    })
  return {
    ...{ status: response.status, headers: response.headers, events: parser.events, json, ended },
    ...{ lastId: parser.lastId, comments: parser.comments, isOver: () => isOver },
    got: async (name, { run, count = 1, withinMs = 20_000 } = {}) => {
      const found = () => parser.events.filter(({ event, data }) => event === name && (!run || data.id === run))
      await until(() => found().length >= count, { what: `${count} of ${name} ${run ?? ''}`, withinMs }).catch(
        (error: unknown) => {
          throw new Error(`${(error as Error).message}. It got ${JSON.stringify(parser.events).slice(-3_000)}`)
        },
      )
      return found()
    },
    close: () => abort.abort(),
  }
}

/** What `inject` has of an answer. A stream never ends for `inject`. */
export type Whole = {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export const isOfEvents = ({ method = 'GET', url }: InjectOptions): boolean =>
  method === 'GET' && /\/events\/?(\?|$)/.test(String(url))

/** The id of a place, which is sent with a comment once a reader was told all that it has missed. */
const caughtUp = /(?:^|\n\n)id: \d+-\d+\n\n/

const listening = new WeakMap<Api, Promise<string>>()

/** A request for events over HTTP: its answer, up to where the reader has caught up. The app comments often. */
export async function untilCaughtUp(app: Api, { url, headers = {} }: InjectOptions): Promise<Whole> {
  const listens = app.server.listening || (listening.get(app) ?? app.listen({ port: 0, host: '127.0.0.1' }))
  if (listens !== true) listening.set(app, listens)
  await listens
  const { port } = app.server.address() as AddressInfo
  const { promise, resolve, reject } = Promise.withResolvers<Whole>()
  const sent = httpRequest({
    port,
    host: '127.0.0.1',
    path: String(url),
    headers: { ...headers } as Record<string, string>,
  })
  sent.on('error', reject)
  sent.on('response', (answer) => {
    let body = ''
    const end = () => {
      resolve({ statusCode: answer.statusCode ?? 0, headers: answer.headers, body })
      sent.destroy()
    }
    answer.setEncoding('utf8')
    answer.on('data', (chunk: string) => {
      body += chunk
      if (caughtUp.test(body)) end()
    })
    answer.on('end', end)
    answer.on('error', end)
  })
  sent.end()
  return promise
}
