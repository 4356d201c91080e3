/** A message of a stream, as `@fastify/sse` takes it. `data` is JSON already. */
export type Message = { readonly event?: string; readonly id?: string; readonly data?: string; readonly retry?: number }

/** What a slow reader may leave waiting, in characters. */
const longestOutbox = 1_048_576

/** About what the lines of a message need beside its data. */
const overhead = 120

/** The messages that wait for one reader, in a limited space. */
export class Outbox {
  readonly #waiting: Message[] = []
  #bytes = 0
  #isOver = false
  #taken = 0
  #wake: () => void = () => {}
  #emptied: (() => void)[] = []

  /** How many messages the reader's connection has taken. */
  get taken(): number {
    return this.#taken
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** @returns false when too much of earlier messages waits: the reader does not read */
  put(messages: readonly Message[]): boolean {
    if (this.#isOver) return true
    if (this.#bytes > longestOutbox) return false
    for (const message of messages) this.#bytes += sizeOf(message)
    this.#waiting.push(...messages)
    this.#wake()
    return true
  }

  /** Ends the messages once those that wait were taken. */
  end(): void {
    this.#isOver = true
    this.#wake()
    this.#tellEmptied()
  }

  /** Waits until all messages were taken, or none will be any more. */
  async emptied(): Promise<void> {
    if (this.isEmpty || this.#isOver) return
    await new Promise<void>((resolve) => this.#emptied.push(resolve))
  }

  /** Each message stays counted until the connection had room for it. */
  async *messages(): AsyncGenerator<Message> {
    for (;;) {
      const next = this.#waiting.shift()
      if (next !== undefined) {
        yield next
        this.#bytes -= sizeOf(next)
        this.#taken += 1
        if (this.isEmpty) this.#tellEmptied()
      } else if (this.#isOver) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  #tellEmptied(): void {
    for (const tell of this.#emptied.splice(0)) tell()
  }
}

const sizeOf = ({ data = '' }: Message): number => data.length + overhead
