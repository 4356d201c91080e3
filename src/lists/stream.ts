import { once } from 'node:events'
import { addAbortSignal, PassThrough, Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { Problem } from '../errors.ts'
import { StreamedList } from '../views/view.ts'

/** Between results and the text of an answer, in chunks where there is much of it. */

/** Characters: a chunk of this size is sent; an answer longer than `buffered` is streamed. */
const limits = { chunk: 64 * 1_024, buffered: 2 * 1_024 * 1_024 } as const

/** Items of a streamed list that are made into one text: long texts would stay in memory until a full collection. */
const itemsAtOnce = 20

/** Answers that are sent while they are made have a connection each: they leave some of those to others. */
export const maxStreams = 4
let streams = 0

/** A client that takes longer to receive an answer is cut off. */
export const maxSendingMs = 60_000

/**
 * A page, written result by result. Until it is long it is only buffered; from then on `add` waits for the client.
 *
 * If `write` fails after the answer has begun, the connection is cut: half an answer must not look like a whole one.
 *
 * @returns one text, when that is all there is
 * @throws {Problem} `unavailable` when as many long answers are being sent as may be
 */
export function pageText(
  write: (page: PageWriter) => Promise<void>,
  takeLong: TakeLong,
  longestMs: number = maxSendingMs,
): Promise<string | Readable> {
  const { promise, resolve, reject } = Promise.withResolvers<string | Readable>()
  const page = new PageWriter(resolve, takeLong, longestMs)
  write(page)
    .then(() => page.end())
    .catch((error: unknown) => {
      reject(error)
      page.breakOff(error)
    })
  return promise
}

/** Takes a long answer of the caller's share, when the answer turns out to be one. @returns gives it back */
export type TakeLong = () => () => void

const tooManyStreams = () =>
  new Problem('unavailable', 'Too many long answers are being sent. Try again shortly, or with a smaller page_size.', {
    retryAfterS: 2,
  })

export class PageWriter {
  readonly #answer: (text: string | Readable) => void
  readonly #takeLong: TakeLong
  readonly #longestMs: number
  #chunk = ''
  #buffered: string[] = []
  #length = 0
  #results = 0
  #stream: PassThrough | undefined
  readonly #closed = new AbortController()

  constructor(answer: (text: string | Readable) => void, takeLong: TakeLong, longestMs: number) {
    this.#answer = answer
    this.#takeLong = takeLong
    this.#longestMs = longestMs
  }

  begin(pagination: object): void {
    this.#chunk = `{"pagination":${JSON.stringify(pagination)},"results":[`
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
    for await (const batch of batches)
      for (let start = 0; start < batch.length; start += itemsAtOnce) {
        this.#chunk += opening + JSON.stringify(batch.slice(start, start + itemsAtOnce)).slice(1, -1)
        opening = ','
        await this.#putWhenFull()
      }
    this.#chunk += opening === '[' ? '[]' : ']'
  }

  async #putWhenFull(): Promise<void> {
    if (this.#chunk.length < limits.chunk) return
    const chunk = this.#chunk
    this.#chunk = ''
    this.#length += chunk.length
    if (this.#stream === undefined && this.#length <= limits.buffered) this.#buffered.push(chunk)
    else await this.#send(chunk)
    // Other requests get their turn.
    await setImmediate()
  }

  async #send(chunk: string): Promise<void> {
    const stream = this.#stream ?? this.#open()
    if (!stream.write(chunk)) await once(stream, 'drain', { signal: this.#closed.signal })
  }

  #open(): PassThrough {
    if (streams >= maxStreams) throw tooManyStreams()
    const giveBack = this.#takeLong()
    streams += 1
    const stream = addAbortSignal(AbortSignal.timeout(this.#longestMs), new PassThrough())
    stream.once('close', () => {
      streams -= 1
      giveBack()
      this.#closed.abort()
    })
    // The server that sends it listens too; this is for the time before.
    stream.on('error', () => {})
    this.#stream = stream
    this.#answer(stream)
    for (const chunk of this.#buffered) stream.write(chunk)
    this.#buffered = []
    return stream
  }

  end(): void {
    const rest = `${this.#chunk}]}`
    if (this.#stream !== undefined) this.#stream.end(rest)
    else this.#answer(this.#buffered.length === 0 ? rest : Readable.from([...this.#buffered, rest]))
  }

  breakOff(error: unknown): void {
    this.#stream?.destroy(error instanceof Error ? error : new Error(String(error)))
  }
}

/** Whether some list of the result is read while it is sent: then the transaction must not end before. */
export const isStreamed = (result: object): boolean =>
  Object.values(result).some((field) => field instanceof StreamedList)
