/**
 * Every `code` of an error of a field, with its meaning and an example of its message. An answer lists them in `errors`.
 * docs/errors.md is made from it. A code never changes its meaning: a new meaning gets a new code.
 */
export const errorCodes = {
  required: ['A field is missing that is needed.', 'This field is required.'],
  unknown_field: ['There is no such field.', 'Unknown field. Did you mean slug?'],
  unknown_parameter: ['The query has a parameter that the path does not have.', 'Unknown parameter.'],
  unknown_header: [
    'A header starts with `Gatewright-`, and there is none of this name.',
    'Unknown header. Did you mean gatewright-owner?',
  ],
  unknown_model: [
    'An entry has a `model` that does not exist.',
    'Unknown model. Did you mean service_core.application?',
  ],
  wrong_type: ['The value has another type than the field.', 'Must be true or false.'],
  wrong_format: ['The text does not have the form that the field takes.', 'Must be a UUID.'],
  invalid_choice: ['The value is not one of those that the field takes.', 'Must be one of: public, confidential.'],
  invalid_value: ['The value breaks another rule of its field.', 'Must be in the future.'],
  invalid_combination: [
    'The value does not go together with another field, or a header with what was sent.',
    'May not be empty when mode is proxy.',
  ],
  invalid_text: [
    'The text cannot be stored: it holds the NUL character or half of a surrogate pair.',
    'May not hold the NUL character.',
  ],
  too_short: ['The text or list is shorter than the field takes.', 'May not be empty.'],
  too_long: ['The text, list or document is longer than the limit.', 'Must be at most 255 characters.'],
  too_small: ['The number is smaller than the field takes.', 'Must be at least 1.'],
  too_large: ['The number is larger than the field takes, or the time later.', 'Must be at most 2147483647.'],
  too_deep: ['Objects and lists are nested deeper than the limit.', 'Is nested deeper than 32 levels.'],
  duplicate: ['A list has the same item twice.', 'Must not hold a key twice.'],
  duplicate_id: ['Two entries have the same `id`.', 'Another entry is called admins too.'],
  not_an_identifier: [
    'The field stands in `identifiers`, and no row can be found by it.',
    'No row can be found by this field: move it to attrs.',
  ],
  not_stored: [
    'The field is always null in answers, and takes nothing else.',
    'This is not stored: leave it out, or send null.',
  ],
  masked_secret: [
    'The value is the mask that answers show for a secret.',
    'This is the mask that answers show for a secret: leave this field out to keep the secret.',
  ],
  unknown_entry: [
    '`!KeyOf` names no entry that stands before, or an entry that leaves no row.',
    '!KeyOf admins names nothing that stands before this entry.',
  ],
  wrong_reference: [
    'A reference names a row or an entry of another kind than the field takes, or stands where none fits.',
    'The flow "login" has the designation authentication: this field takes authorization.',
  ],
  no_such_row: ['There is no row with this key, or none that `!Find` describes.', 'There is no flow with the key 7.'],
  unknown_name: [
    'There is no row with this name.',
    'No flow is called "logn". Did you mean "login" (designation authorization)?',
  ],
  ambiguous: [
    'More than one row has this name, or fits the identifiers.',
    'The identifiers match more than one group.',
  ],
  taken: ['The value must be unique, and another row has it.', '"wiki" is taken by application "wiki".'],
  exists: ['An entry must create its row (`must_created`), and the row is there.', 'group "admins" is there already.'],
  limit_reached: [
    'As many rows are there as one may have.',
    'This user has 20 totp devices, the most that one may have: delete one first.',
  ],
  in_use: [
    'Something else refers to the row: it would not fit any more, or the row may not be deleted.',
    'provider oauth2 "grafana" refers to it in authorization_flow, which takes authorization.',
  ],
  fixed: ['The field cannot be changed once the row is there.', 'A token stays with its user: leave this field out.'],
  not_permitted: ['The caller may not set this field.', 'Only a superuser may set this field.'],
  last_superuser: [
    'No superuser would be left who can authenticate.',
    'Would leave no superuser who can authenticate: first give an active superuser another api token that has not expired.',
  ],
  invalid_rename: ['`was` does not stand where it can rename.', 'Stands beside one identifier, the name.'],
  syntax: [
    'The text is not YAML, or has a tag that is unknown, or that has no value.',
    'Line 4 cannot be read as YAML: tab characters must not be used in indentation.',
  ],
  unsupported_yaml: [
    'The text holds no YAML document, or more than one.',
    'The blueprint holds 2 documents: it takes one.',
  ],
} as const satisfies Readonly<Record<string, readonly [when: string, example: string]>>

export type ErrorCode = keyof typeof errorCodes
