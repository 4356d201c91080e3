/**
 * Every `code` of an error of a field, with its meaning. An answer lists them in `errors`.
 * docs/errors.md is made from it. A code never changes its meaning: a new meaning gets a new code.
 */
export const errorCodes = {
  required: 'A field is missing that is needed.',
  unknown_field: 'There is no such field.',
  unknown_parameter: 'The query has a parameter that the path does not have.',
  unknown_header: 'A header starts with `Gatewright-`, and there is none of this name.',
  unknown_model: 'An entry has a `model` that does not exist.',
  wrong_type: 'The value has another type than the field.',
  wrong_format: 'The text does not have the form that the field takes.',
  invalid_choice: 'The value is not one of those that the field takes.',
  invalid_value: 'The value breaks another rule of its field.',
  invalid_combination: 'The value does not go together with another field, or a header with what was sent.',
  invalid_text: 'The text cannot be stored: it holds the NUL character or half of a surrogate pair.',
  too_short: 'The text or list is shorter than the field takes.',
  too_long: 'The text, list or document is longer than the limit.',
  too_small: 'The number is smaller than the field takes.',
  too_large: 'The number is larger than the field takes, or the time later.',
  too_deep: 'Objects and lists are nested deeper than the limit.',
  duplicate: 'A list has the same item twice.',
  duplicate_id: 'Two entries have the same `id`.',
  not_an_identifier: 'The field stands in `identifiers`, and no row can be found by it.',
  not_stored: 'The field is always null in answers, and takes nothing else.',
  masked_secret: 'The value keeps the stored secret, and there is none.',
  unknown_entry: '`!KeyOf` names no other entry, or one that leaves no row.',
  circle: 'Entries refer to each other in a circle, so that none can be the first.',
  wrong_reference:
    'A reference names a row or an entry of another kind than the field takes, or stands where none fits.',
  no_such_row: 'There is no row with this key, or none that `!Find` describes.',
  unknown_name: 'There is no row with this name.',
  ambiguous: 'More than one row has this name, or fits the identifiers.',
  taken: 'The value must be unique, and another row has it.',
  exists: 'An entry must create its row (`must_created`, `If-None-Match: *`), and the row is there.',
  limit_reached: 'As many rows are there as one may have.',
  in_use: 'Something else refers to the row: it would not fit any more, or the row may not be deleted.',
  fixed: 'The field cannot be changed once the row is there.',
  not_permitted: 'The caller may not set this field.',
  denied: 'A 403: the caller lacks a permission for the entry.',
  other_owner: 'A 409: the row of the entry belongs to another owner, or another user made it.',
  other_stack: 'A 409: the row of the entry belongs to another stack.',
  changed: 'A 412: the row of the entry changed after the plan.',
  last_superuser: 'No superuser would be left who can authenticate.',
  invalid_rename: '`was` does not stand where it can rename.',
  syntax: 'The text is not YAML, or has a tag that is unknown, or that has no value.',
  unsupported_yaml: 'The text holds no YAML document, or more than one.',
} as const satisfies Readonly<Record<string, string>>

export type ErrorCode = keyof typeof errorCodes

export const errorCodeNames = Object.keys(errorCodes) as ErrorCode[]
