import { errorCodes } from '../../src/error-codes.ts'
import type { ErrorDetail } from '../../src/errors.ts'
import { isObject } from '../../src/json-object.ts'

/** What every answer that refuses has, whatever was sent. */

/** Two sentences that were joined with a full stop too many. */
const doubled = /[^\s.]\.\.(?=\s|$)|\. \.(?=\s|$)/

/**
 * Separates the list of errors of a 400 from its fields, and that of another refusal from its sentence.
 *
 * @throws for a list that does not say the same as the fields, or as the sentence, and for a doubled full stop in any answer
 */
export function checked(status: number, json: unknown): { json: unknown; errors: readonly ErrorDetail[] } {
  if (!isObject(json)) return { json, errors: [] }
  const { errors, ...fields } = json
  const texts = status < 400 ? [fields.logs].flat() : leaves(fields)
  for (const text of texts)
    if (typeof text === 'string' && doubled.test(text)) throw new Error(`a doubled full stop: ${text}`)
  if (status > 400 && Array.isArray(errors)) {
    const unsaid = errors
      .map(messageOf)
      .filter((message) => !String(fields.detail).includes(message.replace(/\.$/, '')))
    if (unsaid.length > 0) throw new Error(`errors and detail differ: ${unsaid[0]}`)
    return { json: fields, errors }
  }
  if (status !== 400 || fields.code !== 'invalid') return { json, errors: [] }
  const list = Array.isArray(errors) ? errors : []
  if (list.length === 0 || list.length > 100) throw new Error(`a 400 with ${list.length} errors: ${String(errors)}`)
  const messages = list.map(messageOf)
  const { code: _, error: ofOauth, ...others } = fields
  // An exchange has it; a field of that name would have a list.
  const tree = ofOauth === 'invalid_request' ? others : { ...others, error: ofOauth }
  const isListed = (text: string) =>
    messages.some((message) => text.includes(message)) || / more errors are not listed\.$/.test(text)
  const lost = [
    ...leaves(tree).filter((text) => !isListed(text)),
    ...messages.filter((message) => !leaves(tree).some((text) => text.includes(message))),
  ]
  if (lost.length > 0) throw new Error(`errors and fields of a 400 differ: ${lost[0]}`)
  return { json: fields, errors: list }
}

/** @throws for an error that is not as described */
function messageOf(error: unknown): string {
  const { code, message, pointer, header, parameter } = isObject(error) ? error : {}
  const places = [pointer, header, parameter].filter((each) => typeof each === 'string')
  if (typeof message === 'string' && Object.hasOwn(errorCodes, String(code)) && places.length === 1) return message
  throw new Error(`an error without message, code or one place: ${JSON.stringify(error)}`)
}

function leaves(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : []
}
