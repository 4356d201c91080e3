import { once } from 'node:events'
import { Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import type { Source } from '../db/snapshot.ts'
import { Problem } from '../errors.ts'
import { longWithinMs, Share } from '../http/shares.ts'
import { isStreamed, readBatch, StreamedList } from '../views/view.ts'

/** Writes results as the text of an answer, in chunks when it is long. */

/** Characters: a chunk of this size is sent; an answer longer than `buffered` is streamed. */
const limits = { chunk: 64 * 1_024, buffered: 2 * 1_024 * 1_024 } as const

/** Items of a streamed list that are made into one text: long texts would stay in memory until a full collection. */
const itemsAtOnce = 20

/** The most answers of reads that are sent at once while they are made, and as many of writes: each holds a batch in memory. */
export const maxStreams = 8
const streams = new Share({
  max: maxStreams,
  waitMs: longWithinMs,
  refusal: () =>
    new Problem(
      'unavailable',
      'Too many long answers are being sent. Try again shortly, or with a smaller page_size.',
      {
        retryAfterS: 2,
      },
    ),
})

/**
 * A client that takes no chunk for this long is disconnected. The kernel keeps some 4 MB for a slow client, and takes the next
 * chunk when a third is empty: at 10 KB a second after 160 s.
 */
export const maxStalledMs = 300_000

/** A client that is slower on average is disconnected, too. The data that the kernel keeps for it is within `maxStalledMs`. */
const slowestBytesPerMs = 10

type Sending = {
  readonly takeLong?: TakeLong
  /** The kind of request that it answers; the default is `read`. Neither kind takes the streams of the other. */
  readonly of?: 'read' | 'write'
  /** Characters from which on the answer is streamed. */
  readonly buffered?: number
  readonly stalledMs?: number
  readonly slowestBytesPerMs?: number
}

type Write = (page: PageWriter) => Promise<void>

/**
 * Writes a page result by result. It is only buffered until it is long; from then on `add` waits for the client, and nothing is
 * read in a transaction meanwhile.
 *
 * If `write` fails after the answer has begun, the connection is closed: half an answer must not look like a whole one.
 *
 * @returns one text, when that is all
 * @throws {Problem} `unavailable` when as many long answers are being sent as may be
 */
export async function pageText(write: Write, sending: Sending): Promise<string | Readable> {
  const answer = await written(write, sending)
  if (answer instanceof Readable) return answer
  return answer.length === 1 ? answer.join('') : Readable.from(answer)
}

/** Writes one object as `pageText` does: only a long one comes in chunks. */
export async function objectText(write: Write, sending: Sending): Promise<string | Readable> {
  const answer = await written(write, sending)
  return answer instanceof Readable ? answer : answer.join('')
}

/**
 * The text of one object in a place where other work waits for it, as in the transaction that changes it.
 *
 * @returns null when it is so long that `objectText` answers it in chunks
 */
export async function shortText(source: Source, result: object): Promise<string | null> {
  const write: Write = (page) => {
    page.begin({ ...source, end: () => Promise.reject(tooLong) })
    return page.add([result])
  }
  try {
    return String(await objectText(write, {}))
  } catch (error) {
    if (error === tooLong) return null
    throw error
  }
}

const tooLong = new Error('longer than one text')

function written(write: Write, sending: Sending): Promise<readonly string[] | Readable> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly string[] | Readable>()
  const page = new PageWriter(resolve, sending)
  write(page)
    .then(() => page.end())
    .catch((error: unknown) => {
      reject(error)
      page.breakOff(error)
    })
  return promise
}

/** Gives a slow client time: the server would otherwise close each connection on which nothing moves for half a minute. */
export function patiently<Answer extends string | Readable>({ raw: { socket } }: FastifyReply, answer: Answer): Answer {
  // A request of a test has no connection.
  if (answer instanceof Readable && socket instanceof Socket) socket.setTimeout(maxStalledMs)
  return answer
}

/** Takes a long answer of the caller's share, when the answer becomes one. @returns a function that returns it */
export type TakeLong = () => Promise<() => void>

export class PageWriter {
  readonly #answer: (answer: readonly string[] | Readable) => void
  readonly #sending: Sending
  #source: Source | undefined
  #chunk = ''
  #closing = ''
  #buffered: string[] = []
  #length = 0
  #results = 0
  #sentBytes = 0
  #waitedMs = 0
  #stream: PassThrough | undefined
  readonly #closed = new AbortController()

  constructor(answer: (answer: readonly string[] | Readable) => void, sending: Sending) {
    this.#answer = answer
    this.#sending = sending
  }

  /**
   * @param source reads the streamed parts of results, and is ended before the answer waits for the client
   * @param pagination the pagination of a list; absent: the answer is the one result that is added
   */
  begin(source: Source, pagination?: object): void {
    this.#source = source
    if (pagination === undefined) return
    this.#chunk = `{"pagination":${JSON.stringify(pagination)},"results":[`
    this.#closing = ']}'
  }

  async add(results: readonly object[]): Promise<void> {
    for (const result of results) {
      if (this.#results > 0) this.#chunk += ','
      this.#results += 1
      if (isStreamed(result)) await this.#addFields(result)
      else this.#chunk += JSON.stringify(result)
      await this.#putWhenFull()
    }
  }

  async #addFields(result: object): Promise<void> {
    let opening = '{'
    for (const [name, field] of Object.entries(result)) {
      this.#chunk += `${opening}${JSON.stringify(name)}:`
      opening = ','
      if (field instanceof StreamedList) await this.#addList(field)
      else this.#chunk += JSON.stringify(field)
    }
    this.#chunk += '}'
  }

  async #addList({ batches }: StreamedList): Promise<void> {
    let opening = '['
    for (const each of batches) {
      const batch = await readBatch(this.#begun(), each)
      for (let start = 0; start < batch.length; start += itemsAtOnce) {
        this.#chunk += opening + JSON.stringify(batch.slice(start, start + itemsAtOnce)).slice(1, -1)
        opening = ','
        await this.#putWhenFull()
      }
    }
    this.#chunk += opening === '[' ? '[]' : ']'
  }

  #begun(): Source {
    if (this.#source === undefined) throw new Error('the page was not begun')
    return this.#source
  }

  async #putWhenFull(): Promise<void> {
    if (this.#chunk.length < limits.chunk) return
    const chunk = this.#chunk
    this.#chunk = ''
    this.#length += chunk.length
    if (this.#stream === undefined && this.#length <= (this.#sending.buffered ?? limits.buffered))
      this.#buffered.push(chunk)
    else await this.#send(chunk)
    // Other requests get their turn.
    await setImmediate()
  }

  async #send(chunk: string): Promise<void> {
    if (this.#stream === undefined) {
      this.#stream = await this.#open()
      for (const each of this.#buffered.splice(0)) await this.#write(this.#stream, each)
    }
    await this.#write(this.#stream, chunk)
  }

  /** Waits until the client has taken all the text that was written. */
  async #write(stream: PassThrough, chunk: string): Promise<void> {
    this.#sentBytes += Buffer.byteLength(chunk)
    if (stream.write(chunk)) return
    const timer = this.#cutOffLater(stream)
    const from = performance.now()
    try {
      await once(stream, 'drain', { signal: this.#closed.signal })
    } finally {
      clearTimeout(timer)
      this.#waitedMs += performance.now() - from
    }
  }

  /** Counts only the time that was spent waiting for the client. */
  #cutOffLater(stream: PassThrough): NodeJS.Timeout {
    const { stalledMs = maxStalledMs, slowestBytesPerMs: slowest = slowestBytesPerMs } = this.#sending
    const leftMs = stalledMs + this.#sentBytes / slowest - this.#waitedMs
    const stalled = () => stream.destroy(new Error('The client stopped reading, or reads too slowly.'))
    return setTimeout(stalled, Math.min(stalledMs, leftMs))
  }

  async #open(): Promise<PassThrough> {
    await this.#begun().end()
    const { takeLong, of = 'read' } = this.#sending
    const giveBack = await takeLong?.()
    const giveStreamBack = await streams.take(of).catch((error: unknown) => {
      giveBack?.()
      throw error
    })
    const stream = new PassThrough()
    stream.once('close', () => {
      giveStreamBack()
      giveBack?.()
      this.#closed.abort()
    })
    // The server that sends it has a listener too; this one is for the time before.
    stream.on('error', () => {})
    this.#answer(stream)
    return stream
  }

  end(): void {
    const rest = `${this.#chunk}${this.#closing}`
    const stream = this.#stream
    if (stream === undefined) {
      this.#answer([...this.#buffered, rest])
      return
    }
    this.#sentBytes += Buffer.byteLength(rest)
    stream.end(rest)
    if (stream.closed) return
    const timer = this.#cutOffLater(stream)
    stream.once('close', () => clearTimeout(timer))
  }

  breakOff(error: unknown): void {
    this.#stream?.destroy(error instanceof Error ? error : new Error(String(error)))
  }
}
