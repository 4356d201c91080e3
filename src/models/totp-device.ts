import { z } from 'zod'
import { randomBytes } from '../ids.ts'
import { defineModel } from './define.ts'
import { generated, int32, integerReference, name, secret, text } from './fields.ts'

const base32Letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** 160 bits, as RFC 4226 recommends, in base32, which authenticator apps read. Each byte gives one letter. */
const newKey = () => Array.from(randomBytes(32), (byte) => base32Letters[byte % 32]).join('')

const base32 = (sent: string) =>
  /^[A-Z2-7]{16,128}$/.test(sent) ? undefined : 'Must be a key in base32: 16 to 128 letters A to Z and digits 2 to 7.'

/** An authenticator of time-based one-time passwords (RFC 6238). */
export default defineModel({
  name: 'service_stages_totp.totpdevice',
  displayName: 'TOTP device',
  table: 'totp_devices',
  key: 'integer',
  identifiers: [['name', 'user']],
  attrs: z.object({
    name: name(64),
    user: integerReference('user'),
    key: generated(secret(text(base32, 128)), newKey),
    digits: z.literal([6, 8], 'Must be 6 or 8.').default(6),
    step: int32(1).max(3_600, 'Must be at most 3600.').default(30),
    confirmed: z.boolean().default(true),
  }),
  columns: { user: 'user_pk', key: 'sealed_key' },
  uuid: true,
})
