import { once } from 'node:events'
import { addAbortSignal, PassThrough, Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { Problem } from '../errors.ts'
import { atHand, piecesOf } from '../views/json-text.ts'

/** Between values and the text of an answer, a piece at a time where there is much of it. */

/** As `JSON.stringify`; members that are JSON already are put in unread. */
export const stringify = (value: unknown): string => [...piecesOf(value)].map(atHand).join('')

/** Characters. Of a piece: far below a millisecond's work. Of an answer: beyond it, it is sent while it is made. */
const limits = { piece: 64 * 1_024, held: 2 * 1_024 * 1_024 } as const

/** Answers that are sent while they are made hold a connection each: they leave some of those to others. */
export const mostAtOnce = 4
let sending = 0

/** Whoever takes longer to receive one is not waited for: it is broken off. */
const patienceMs = 60_000

/**
 * A page, written result by result. Until it is long it is only held; from then on `add` waits for whoever receives it.
 *
 * `write` may go on long after the answer began. Should it fail then, the connection is cut: half an answer must not
 * look like a whole one.
 *
 * @returns one text, when that is all there is
 * @throws {Problem} `unavailable` when as many long answers are being sent as may be
 */
export function pageText(
  write: (page: PageWriter) => Promise<void>,
  longestMs: number = patienceMs,
): Promise<string | Readable> {
  const { promise, resolve, reject } = Promise.withResolvers<string | Readable>()
  const page = new PageWriter(resolve, longestMs)
  write(page)
    .then(() => page.end())
    .catch((error: unknown) => {
      reject(error instanceof Crowded ? crowded() : error)
      page.breakOff(error)
    })
  return promise
}

/** No Problem yet: in a transaction, `unavailable` means that its connection is of no use any more. */
class Crowded extends Error {}

const crowded = () =>
  new Problem('unavailable', 'Too many long answers are being sent. Try again shortly, or with a smaller page_size.', {
    retryAfterS: 2,
  })

export class PageWriter {
  readonly #answer: (text: string | Readable) => void
  readonly #longestMs: number
  #piece = ''
  #held: string[] = []
  #length = 0
  #results = 0
  #stream: PassThrough | undefined
  readonly #gone = new AbortController()

  constructor(answer: (text: string | Readable) => void, longestMs: number) {
    this.#answer = answer
    this.#longestMs = longestMs
  }

  begin(pagination: object): void {
    this.#piece = `{"pagination":${JSON.stringify(pagination)},"results":[`
  }

  async add(results: readonly unknown[]): Promise<void> {
    for (const result of results) {
      if (this.#results > 0) this.#piece += ','
      this.#results += 1
      for (const piece of piecesOf(result)) {
        if (typeof piece !== 'string') for await (const text of piece.pieces) await this.#put(text)
        else {
          this.#piece += piece
          if (this.#piece.length >= limits.piece) await this.#put('')
        }
      }
    }
  }

  async #put(text: string): Promise<void> {
    this.#piece += text
    if (this.#piece.length < limits.piece) return
    const piece = this.#piece
    this.#piece = ''
    this.#length += piece.length
    if (this.#stream === undefined && this.#length <= limits.held) this.#held.push(piece)
    else await this.#send(piece)
    // Others get their turn.
    await setImmediate()
  }

  async #send(piece: string): Promise<void> {
    const stream = this.#stream ?? this.#open()
    if (!stream.write(piece)) await once(stream, 'drain', { signal: this.#gone.signal })
  }

  #open(): PassThrough {
    if (sending >= mostAtOnce) throw new Crowded('too many long answers are being sent')
    sending += 1
    const stream = addAbortSignal(AbortSignal.timeout(this.#longestMs), new PassThrough())
    stream.once('close', () => {
      sending -= 1
      this.#gone.abort()
    })
    // Whoever sends it is told, too; this is for the time before he listens.
    stream.on('error', () => {})
    this.#stream = stream
    this.#answer(stream)
    for (const piece of this.#held) stream.write(piece)
    this.#held = []
    return stream
  }

  end(): void {
    const rest = `${this.#piece}]}`
    if (this.#stream !== undefined) this.#stream.end(rest)
    else this.#answer(this.#held.length === 0 ? rest : Readable.from([...this.#held, rest]))
  }

  breakOff(error: unknown): void {
    this.#stream?.destroy(error instanceof Error ? error : new Error(String(error)))
  }
}
