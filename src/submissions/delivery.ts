import { z } from 'zod'
import { ErrorList } from '../errors.ts'
import { withExample } from '../example.ts'
import { type Headers, headerText } from '../http/headers.ts'
import { preferencesIn } from '../http/prefer.ts'
import { longestMessage, messageOf, whyNoMessage } from '../runs/message.ts'
import type { Delivery } from './submission.ts'

/** The delivery of an apply, as request headers: once under its key, whether the answer waits, and the message. */

export const deliveryHeaders = z.object({
  'Idempotency-Key': withExample(
    z.string().optional(),
    '"4d9a1c1e-6d3c-4b7b-9a3c-1f6d1d1f7a55"',
    'The same request again under its key gets the outcome of the first, for 24 hours. Something else under it is a 422. Take a new one for each change, such as a UUID.',
  ),
  Prefer: withExample(
    z.string().optional(),
    'respond-async',
    '`respond-async`: 202 as soon as it is recorded. Other preferences are ignored (RFC 7240).',
  ),
  'Gatewright-Message': withExample(
    z.string().optional(),
    'back to the redirect of last week, CHG-1042',
    `Why it is done: a line of at most ${longestMessage} characters, which is kept with the run. All who may see the run can read it: write no secret.`,
  ),
})

/** @throws {Problem} `invalid` */
export function readDelivery(headers: Headers): Delivery {
  const errors = new ErrorList()
  const key = readKey(headers['idempotency-key'], errors)
  const message = readMessage(headers['gatewright-message'], errors)
  errors.throwIfAny()
  return { key, message, isAsync: preferencesIn(headers.prefer).has('respond-async') }
}

function readMessage(value: string | string[] | undefined, errors: ErrorList): string | null {
  const text = messageOf(value === undefined ? '' : headerText(value))
  const wrong = text === null ? null : whyNoMessage(text)
  if (wrong !== null) errors.of('header').add(['Gatewright-Message'], 'wrong_format', wrong)
  return text
}

/** The text of a header in quotes, as the draft has it, or bare, as most clients send it. */
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
