import type { z } from 'zod'
import type { Field } from '../models/define.ts'
import { int32, uuid } from '../models/fields.ts'

/** The field `pk` among identifiers, by the type of the model's key. */
export const pkField: Readonly<Record<'uuid' | 'integer', Field>> = {
  uuid: keyField(uuid()),
  integer: keyField(int32(1)),
}

function keyField(schema: z.ZodType): Field {
  const storage = { in: 'column', column: 'pk', json: false } as const
  return {
    name: 'pk',
    schema,
    required: false,
    initial: undefined,
    reference: undefined,
    folded: false,
    isSet: false,
    isFree: false,
    storage,
  }
}
