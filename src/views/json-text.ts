/**
 * JSON that PostgreSQL wrote, and that nobody here reads: it is passed on as it is. For lists so long that making
 * objects of them, and text of those again, would keep everybody else waiting.
 */
export class JsonText {
  /** Together they are one JSON value; none is long. */
  readonly pieces: readonly string[]

  constructor(pieces: readonly string[]) {
    this.pieces = pieces
  }

  toJSON(): unknown {
    return JSON.parse(this.pieces.join(''))
  }
}

/** @param items each some items of the list, as JSON with commas between them */
export const jsonList = (items: readonly string[]): JsonText =>
  new JsonText(['[', ...items.map((text, index) => (index === 0 ? text : `,${text}`)), ']'])
