/**
 * JSON that is text already, mostly because PostgreSQL wrote it, and that nobody here reads: it is passed on as it is.
 * For what is long, or shown again and again: making objects of it, and text of those, would keep everybody else waiting.
 */
export class JsonText {
  /** Together they are one JSON value; none is long. They can be gone through again. */
  readonly pieces: Iterable<string>

  constructor(pieces: Iterable<string>) {
    this.pieces = pieces
  }

  toJSON(): unknown {
    return JSON.parse([...this.pieces].join(''))
  }
}

/** JSON that is too much to hold: it is read from the database while it is sent, once, before the transaction ends. */
export class LateJson {
  readonly pieces: AsyncIterable<string>

  constructor(pieces: AsyncIterable<string>) {
    this.pieces = pieces
  }
}

/** @param items each some items of the list, as JSON with commas between them; they are referred to, not copied */
export const jsonList = (items: readonly string[]): JsonText =>
  new JsonText({
    *[Symbol.iterator]() {
      yield '['
      for (const [index, text] of items.entries()) {
        if (index > 0) yield ','
        yield text
      }
      yield ']'
    },
  })

/** The same of items that are yet to come. */
export async function* lateList(items: AsyncIterable<string>): AsyncGenerator<string> {
  let opening = '['
  for await (const text of items) {
    yield opening
    yield text
    opening = ','
  }
  yield opening === '[' ? '[]' : ']'
}

/** A value that several results show. Its text is made each time: together they could be much. */
export const jsonOf = (value: object): JsonText =>
  new JsonText({
    *[Symbol.iterator]() {
      for (const piece of piecesOf(value)) yield atHand(piece)
    },
  })

export function atHand(piece: string | LateJson): string {
  if (typeof piece === 'string') return piece
  throw new Error('JSON that is yet to be read cannot be part of a text')
}

/** As `JSON.stringify`; members that are JSON already are put in unread. */
export function* piecesOf(value: unknown): Generator<string | LateJson> {
  if (!holdsText(value)) return yield JSON.stringify(value)
  let plain: [string, unknown][] = []
  let opening = '{'
  // One text of all that stand together: that is the quickest.
  const before = (more: string): string => {
    const text = JSON.stringify(Object.fromEntries(plain)).slice(1, -1)
    plain = []
    const joined = [text, more].filter((each) => each !== '').join(',')
    const piece = joined === '' ? '' : `${opening}${joined}`
    if (joined !== '') opening = ','
    return piece
  }
  for (const [name, member] of Object.entries(value)) {
    if (!isText(member)) {
      plain.push([name, member])
      continue
    }
    yield before(`${JSON.stringify(name)}:`)
    if (member instanceof JsonText) yield* member.pieces
    else yield member
  }
  yield `${before('')}}`
}

const isText = (member: unknown) => member instanceof JsonText || member instanceof LateJson

const holdsText = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.values(value).some(isText)
