import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { JsonText } from '../views/json-text.ts'

/** Between values and the text of an answer, a piece at a time where there is much of it. */

/** As `JSON.stringify`; members that are JSON already are put in unread. */
export const stringify = (value: unknown): string => [...piecesOf(value)].join('')

function* piecesOf(value: unknown): Generator<string> {
  if (!holdsText(value)) return yield JSON.stringify(value)
  let opening = '{'
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    yield `${opening}${JSON.stringify(name)}:`
    if (member instanceof JsonText) yield* member.pieces
    else yield JSON.stringify(member)
    opening = ','
  }
  yield '}'
}

const holdsText = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.values(value).some((member) => member instanceof JsonText)

/** Characters: about a millisecond's work. */
const pieceLength = 256 * 1_024

/**
 * A page as the text of its answer. Others get their turn after each piece, while it is made and while it is sent.
 *
 * @returns one text, when that is all there is
 */
export async function pageText(pagination: object, results: readonly unknown[]): Promise<string | Readable> {
  const pieces: string[] = []
  let piece = `{"pagination":${JSON.stringify(pagination)},"results":[`
  for (const [index, result] of results.entries()) {
    if (index > 0) piece += ','
    for (const part of piecesOf(result)) {
      piece += part
      if (piece.length < pieceLength) continue
      pieces.push(piece)
      piece = ''
      await setImmediate()
    }
  }
  pieces.push(`${piece}]}`)
  return pieces.length === 1 ? pieces.join('') : Readable.from(pieces)
}
