import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Source } from '../db/snapshot.ts'
import { Problem } from '../errors.ts'
import { isStreamed, readBatch, StreamedList } from '../views/view.ts'
import { longWithinMs, Share } from './shares.ts'

/** Answers that may be long: their text is made in pieces, and sent in chunks while it is made. */

/** Characters: a chunk of this size is sent; an answer longer than `buffered` is streamed. */
const limits = { chunk: 64 * 1_024, buffered: 2 * 1_024 * 1_024 } as const

/** Items of a streamed list that are made into one text: long texts would stay in memory until a full collection. */
const itemsAtOnce = 20

/** The most answers of reads that are sent at once while they are made, and as many of writes: each holds a batch in memory. */
export const maxStreams = 8
const tooMany = 'Too many long answers are being sent. Try again shortly, or with a smaller page_size.'
const streams = new Share({
  max: maxStreams,
  waitMs: longWithinMs,
  refuse: () => new Problem('unavailable', tooMany, { retryAfterS: 2 }),
})

/**
 * A client that takes no chunk for this long is disconnected. The kernel keeps some 4 MB for a slow client, and takes the next
 * chunk when a third is empty: at 10 KB a second after 160 s.
 */
const maxStalledMs = 300_000

/** A client that is slower on average is disconnected, too. The data that the kernel keeps for it is within `maxStalledMs`. */
const slowestBytesPerMs = 10

type Sending = {
  /** The kind of request that it answers; the default is `read`. Neither kind takes the streams of the other. */
  readonly of?: 'read' | 'write'
  readonly stalledMs?: number
  readonly slowestBytesPerMs?: number
}

type Pieces = AsyncIterable<string>

/** The text of a page, in pieces. @param source reads the streamed parts of results @param head the members before them */
export async function* pageText(source: Source, head: object, batches: AsyncIterable<readonly object[]>): Pieces {
  yield `${JSON.stringify(head).slice(0, -1)},"results":[`
  let separator = ''
  for await (const results of batches)
    for (const result of results) {
      yield separator
      yield* objectText(source, result)
      separator = ','
    }
  yield ']}'
}

export async function* objectText(source: Source, object: object): Pieces {
  if (!isStreamed(object)) {
    yield JSON.stringify(object)
    return
  }
  let opening = '{'
  for (const [name, field] of Object.entries(object)) {
    yield `${opening}${JSON.stringify(name)}:`
    opening = ','
    if (field instanceof StreamedList) yield* listText(source, field)
    else yield JSON.stringify(field)
  }
  yield '}'
}

async function* listText(source: Source, { batches }: StreamedList): Pieces {
  let opening = '['
  for (const each of batches) {
    const batch = await readBatch(source, each)
    for (let start = 0; start < batch.length; start += itemsAtOnce) {
      yield opening + JSON.stringify(batch.slice(start, start + itemsAtOnce)).slice(1, -1)
      opening = ','
    }
  }
  yield opening === '[' ? '[]' : ']'
}

async function* chunksOf(pieces: Pieces): AsyncGenerator<string, void> {
  let chunk = ''
  for await (const piece of pieces) {
    chunk += piece
    if (chunk.length < limits.chunk) continue
    yield chunk
    chunk = ''
    // Other requests get their turn.
    await setImmediate()
  }
  if (chunk !== '') yield chunk
}

/** The reply to a request, whose client takes a long answer of its share when the answer becomes one. */
type Reply = {
  readonly request: Pick<FastifyRequest, 'takeLongAnswer'>
  readonly raw: { readonly socket: FastifyReply['raw']['socket'] }
}

/**
 * Makes an answer. It is buffered until it is long. From then on it is made no faster than the client takes it, and `source` is
 * ended first: no transaction waits for the client. An error breaks the connection then: half an answer must not look like a whole
 * one.
 *
 * @returns its text, when that is all
 * @throws {Problem} `unavailable` when as many long answers are being sent as may be
 */
export async function answerOf(
  { request, raw: { socket } }: Reply,
  source: Source,
  pieces: Pieces,
  { of = 'read', ...patience }: Sending = {},
): Promise<string | Readable> {
  const chunks = chunksOf(pieces)
  const buffered: string[] = []
  try {
    for (let length = 0; length <= limits.buffered; ) {
      const { value } = await chunks.next()
      if (value === undefined) {
        await source.end()
        return buffered.join('')
      }
      buffered.push(value)
      length += value.length
    }
  } catch (error) {
    return source.fail(error)
  }
  await source.end()
  const giveBack = await request.takeLongAnswer()
  const giveStreamBack = await streams.take(of).catch((error: unknown) => {
    giveBack()
    throw error
  })
  const stream = Readable.from(patient(buffered, chunks, patience, (error) => stream.destroy(error)))
  stream.once('close', () => {
    giveStreamBack()
    giveBack()
  })
  // The server that sends it has a listener too; this one is for the time before.
  stream.on('error', () => {})
  // The first chunk must be taken in time, too.
  stream.read(0)
  // The server would otherwise close each connection on which nothing moves for half a minute. A request of a test has none.
  if (socket instanceof Socket) socket.setTimeout(maxStalledMs)
  return stream
}

/** Counts only the time that is spent waiting for the client. */
async function* patient(
  buffered: readonly string[],
  chunks: AsyncGenerator<string, void>,
  { stalledMs = maxStalledMs, slowestBytesPerMs: slowest = slowestBytesPerMs }: Sending,
  cutOff: (error: Error) => void,
): Pieces {
  let [bytes, waitedMs] = [0, 0]
  const stalled = () => cutOff(new Error('The client stopped reading, or reads too slowly.'))
  async function* all(): Pieces {
    try {
      yield* buffered
      yield* chunks
    } finally {
      // A client may leave before the first of them.
      await chunks.return()
    }
  }
  for await (const chunk of all()) {
    bytes += Buffer.byteLength(chunk)
    const from = performance.now()
    const timer = setTimeout(stalled, Math.min(stalledMs, stalledMs + bytes / slowest - waitedMs))
    try {
      yield chunk
    } finally {
      clearTimeout(timer)
      waitedMs += performance.now() - from
    }
  }
}

/**
 * The text of one object in a place where other work waits for it, as in the transaction that changes it.
 *
 * @returns null when it is so long that it would be streamed
 */
export async function shortText(source: Source, object: object): Promise<string | null> {
  let text = ''
  for await (const piece of objectText(source, object)) {
    text += piece
    if (text.length > limits.buffered) return null
  }
  return text
}
