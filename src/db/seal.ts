import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto'
import { randomBytes } from '../ids.ts'

/** The place of a sealed value. It cannot be opened in another place. */
export type SealedPlace = { readonly table: string; readonly row: string; readonly column: string }

/** Seals and opens with AES-256-GCM under keys derived from SECRET_KEY. */
export type Keyring = {
  /** @returns `v2.<key id>.<nonce>.<ciphertext and tag>`, base64url parts */
  seal(plaintext: string, place: SealedPlace): string
  /**
   * Opens what was sealed under SECRET_KEY or SECRET_KEY_PREVIOUS, also by earlier versions (`v1`).
   *
   * @throws when the envelope belongs to another place or key, or was altered
   */
  open(envelope: string, place: SealedPlace): string
  /** The first characters of each envelope that `seal` makes now. */
  readonly prefix: string
  /** A key for another purpose, such as signing sessions: 32 bytes. */
  derive(purpose: string): Buffer
  /** A digest under SECRET_KEY of values that may hold secrets which could be guessed: 32 bytes. */
  digest(purpose: string, ...parts: readonly (string | Uint8Array)[]): Buffer
  /** Digests of a text under SECRET_KEY, and under SECRET_KEY_PREVIOUS while it is set. */
  digests(purpose: string, text: string): readonly Buffer[]
  readonly ids: readonly [string, ...string[]]
}

const tagBytes = 16

/** The keys of one secret. `id`: its name in an envelope. */
type Master = { readonly id: string; readonly key: Buffer; readonly derive: (purpose: string) => Buffer }

/**
 * @param secret SECRET_KEY: a text of 32 characters or more
 * @param previous SECRET_KEY_PREVIOUS, which opens and does not seal
 */
export function keyring(secret: string, previous: string | null = null): Keyring {
  const current = masterOf(secret)
  const others = previous === null ? [] : [masterOf(previous)]
  const masters = [current, ...others]
  const prefix = `v2.${current.id}.`
  const hmac = ({ derive }: Master, purpose: string, parts: readonly (string | Uint8Array)[]) =>
    parts.reduce((digest, part) => digest.update(part), createHmac('sha256', derive(purpose))).digest()
  return {
    prefix,
    derive: current.derive,
    digest: (purpose, ...parts) => hmac(current, purpose, parts),
    digests: (purpose, text) => masters.map((master) => hmac(master, purpose, [text])),
    ids: [current.id, ...others.map(({ id }) => id)],
    seal(plaintext, place) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', recordKey(current, place), nonce).setAAD(associated(place))
      const sealed = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `${prefix}${nonce.toString('base64url')}.${sealed.toString('base64url')}`
    },
    open(envelope, place) {
      const [version = '', id, nonce, body] = envelope.split('.')
      if (!/^v[12]$/.test(version) || nonce === undefined || body === undefined) throw new Error('not a sealed value')
      const master = masters.find((each) => each.id === id)
      if (master === undefined)
        throw new Error(`sealed under key ${id}, but SECRET_KEY is ${masters.map((each) => each.id).join(' or ')}`)
      const sealed = Buffer.from(body, 'base64url')
      const key = version === 'v1' ? master.key : recordKey(master, place)
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'), {
        authTagLength: tagBytes,
      }).setAAD(associated(place))
      decipher.setAuthTag(sealed.subarray(-tagBytes))
      return Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()]).toString('utf8')
    },
  }
}

function masterOf(secret: string): Master {
  const derived = new Map<string, Buffer>()
  const hkdf = (purpose: string) => Buffer.from(hkdfSync('sha256', secret, 'gatewright', purpose, 32))
  const key = hkdf('seal')
  return {
    key,
    id: createHash('sha256').update(key).digest('base64url').slice(0, 8),
    derive: (purpose) => derived.getOrInsertComputed(purpose, hkdf),
  }
}

/**
 * Each record has a key of its own. Random nonces of 96 bits may be used 2^32 times under one key (NIST SP 800-38D, 8.3):
 * one key for all runs would reach that.
 */
const recordKey = ({ key }: Master, { table, row }: SealedPlace): Buffer =>
  Buffer.from(hkdfSync('sha256', key, 'gatewright record', JSON.stringify([table, row]), 32))

const associated = ({ table, row, column }: SealedPlace) => Buffer.from(JSON.stringify([table, row, column]))
