import { isFromCaller } from '../document/generate.ts'
import { isTag } from '../document/tags.ts'
import type { ErrorSink, FieldPath } from '../errors.ts'
import { hidden } from '../hidden.ts'
import { isObject } from '../json-object.ts'
import type { Field } from '../models/define.ts'
import { hasPlaceholder, isPlaceholder } from '../models/placeholder.ts'

/**
 * Placeholders should have been replaced before the document was sent: they are no values, and no secrets. Objects of free form,
 * names and expressions may hold them.
 */

const readBy =
  'gatewright apply reads it from !Env NAME, without quotes in YAML, or from {"env": "NAME"} in JSON; !File and "file" name a file.'
const messages = {
  secret: `This is a placeholder, and nothing replaces it here: send the secret. ${readBy}`,
  text: `Holds a placeholder, and nothing replaces it here: send the value. ${readBy}`,
  caller:
    '{"env": ...} and {"file": ...} are read on the side of the caller: apply the file with gatewright apply, or send the value.',
} as const

/** @returns whether there is any; an error is added for each */
export function refusePlaceholders(sent: unknown, field: Field, at: FieldPath, errors: ErrorSink): boolean {
  let isAny = false
  const refuse = (path: FieldPath, message: string) => {
    isAny = true
    errors.add(path, 'invalid_value', message)
  }
  const visit = (value: unknown, path: FieldPath): void => {
    if (typeof value === 'string') {
      if (field.secret ? isPlaceholder(value) || value === hidden : !field.isFree && hasPlaceholder(value))
        refuse(path, field.secret ? messages.secret : messages.text)
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) visit(item, [...path, index])
    } else if (isObject(value) && !isTag(value)) {
      if (isFromCaller(value) && isForm(value, field)) refuse(path, messages.caller)
      else if (field.secret || path.length > at.length)
        for (const [name, inner] of Object.entries(value)) visit(inner, [...path, name])
    }
  }
  // The object of a secret may be sent as its text.
  const parsed = field.secret && typeof sent === 'string' ? field.schema.safeParse(sent).data : undefined
  visit(isObject(parsed) ? parsed : sent, at)
  return isAny
}

/** Whether such an object is a placeholder: `{"env": "prod"}` is a value of the field `attributes` itself. */
export const isForm = (value: unknown, { secret, schema }: Field): boolean => secret || !schema.safeParse(value).success
