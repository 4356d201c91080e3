import { z } from 'zod'
import { ErrorList } from '../errors.ts'
import type { Delivery } from '../runs/submit.ts'
import type { Headers } from './headers.ts'

/** How an apply is delivered, as request headers: once under its key, and whether the answer waits. */

export const deliveryHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .optional()
    .meta({
      description:
        'The same request again under its key gets the outcome of the first, for 24 hours. Something else under it is a 422. Take a new one for each change, such as a UUID.',
      examples: ['"4d9a1c1e-6d3c-4b7b-9a3c-1f6d1d1f7a55"'],
    }),
  Prefer: z
    .string()
    .optional()
    .meta({
      description: '`respond-async`: 202 as soon as it is recorded. Other preferences are ignored (RFC 7240).',
      examples: ['respond-async'],
    }),
})

/** @throws {Problem} `invalid` */
export function readDelivery(headers: Headers): Delivery {
  const errors = new ErrorList()
  const key = readKey(headers['idempotency-key'], errors)
  errors.throwIfAny()
  const preferences = String(headers.prefer ?? '').split(',')
  return { key, isAsync: preferences.some((each) => each.trim().toLowerCase() === 'respond-async') }
}

/** A text in quotes, as the draft has it, or bare, as most clients send it. */
function readKey(value: string | string[] | undefined, errors: ErrorList): string | null {
  if (value === undefined) return null
  const [, quoted, bare] = /^(?:"([^"\\]*)"|([^"]*))$/.exec(String(value).trim()) ?? []
  const key = quoted ?? bare
  if (key !== undefined && /^[\x20-\x7e]{1,255}$/.test(key)) return key
  errors
    .of('header')
    .add(
      ['Idempotency-Key'],
      'wrong_format',
      'It takes 1 to 255 printable ASCII characters, with or without quotes around them.',
    )
  return null
}
