import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { z } from 'zod'
import { asLost, backOff, type Client, isLater, Lost, readAnswer, refusalOf } from './client.ts'
import { Unreachable } from './exit.ts'

/** Streams of events (Server-Sent Events), followed through restarts of the service. */

export type Followed = { readonly event: string; readonly data: unknown }

type Options = {
  /** By `performance.now()`: it ends then. */
  readonly endsAt: number
  /** How long the service may be away. */
  readonly awayMs: number
  readonly onWait: (why: string) => void
}

/** No event is longer. */
const longestBlock = 1_000_000

/**
 * The events of a stream, until the service ends it for good (204), or time is up. After a break it goes on behind the last
 * event; an event may come twice.
 *
 * @throws {Unreachable} when the service is away for too long; @throws {UsageError} when it refuses
 */
export async function* follow(client: Client, path: string, options: Options): AsyncGenerator<Followed> {
  const { endsAt, awayMs, onWait } = options
  const place = { id: '' }
  let [tries, awaySince] = [0, performance.now()]
  while (performance.now() < endsAt) {
    const answer = await client
      .stream(path, { ...(place.id !== '' && { 'last-event-id': place.id }) }, endsAt)
      .catch(asLost)
    const isLost = answer instanceof Lost
    if (!isLost && answer.status === 204) return
    if (!isLost && answer.stream !== null) {
      for await (const event of eventsIn(answer.stream, place)) {
        yield event
        tries = 0
      }
      awaySince = performance.now()
      if (performance.now() >= endsAt) return
      onWait('the stream of events ended; following again')
    } else {
      if (!isLost && !isLater(answer.status)) readAnswer(client, answer, z.never())
      const why = isLost ? answer.message : refusalOf(answer).join(' ')
      if ((isLost && answer.isFinal) || performance.now() - awaySince > awayMs) throw new Unreachable(why)
      onWait(why)
    }
    await backOff(tries, Math.max(1, endsAt - performance.now()), isLost ? undefined : answer)
    tries += 1
  }
}

/** @param place gets the id of each block @returns when the stream ends, or breaks */
async function* eventsIn(stream: ReadableStream<Uint8Array>, place: { id: string }): AsyncGenerator<Followed> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of Readable.fromWeb(stream)) {
      rest += decoder.decode(chunk, { stream: true })
      if (rest.length > longestBlock) return
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const fields = fieldsOf(block)
        place.id = fields.get('id') ?? place.id
        const data = parsed(fields.get('data'))
        if (data !== undefined) yield { event: fields.get('event') ?? 'message', data }
      }
    }
  } catch {
    // The connection broke, or time is up: the caller connects again, or ends.
  }
}

const fieldsOf = (block: string): ReadonlyMap<string, string> =>
  new Map(
    block.split('\n').flatMap((line): [string, string][] => {
      const [, name = '', value = ''] = /^(\w+): ?(.*)$/.exec(line) ?? []
      return name === '' ? [] : [[name, value]]
    }),
  )

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
