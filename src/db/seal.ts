import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto'
import { randomBytes } from '../ids.ts'

/** The place of a sealed value. It cannot be opened in another place. */
export type SealedPlace = { readonly table: string; readonly row: string; readonly column: string }

/** Seals and opens with AES-256-GCM under a key derived from SECRET_KEY. */
export type Keyring = {
  /** @returns `v1.<key id>.<nonce>.<ciphertext and tag>`, base64url parts */
  seal(plaintext: string, place: SealedPlace): string
  /** @throws when the envelope is of another place or key, or was altered */
  open(envelope: string, place: SealedPlace): string
  /** A key for another purpose, such as signing sessions: 32 bytes. */
  derive(purpose: string): Buffer
}

const tagBytes = 16

/** @param secret SECRET_KEY: a text of 32 characters or more */
export function keyring(secret: string): Keyring {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', secret, 'gatewright', purpose, 32))
  const key = derive('seal')
  const keyId = createHash('sha256').update(key).digest('base64url').slice(0, 8)
  return {
    derive,
    seal(plaintext, place) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(associated(place))
      const sealed = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `v1.${keyId}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`
    },
    open(envelope, place) {
      const [version, id, nonce, body] = envelope.split('.')
      if (version !== 'v1' || nonce === undefined || body === undefined) throw new Error('not a sealed value')
      if (id !== keyId) throw new Error(`sealed under key ${id}, but SECRET_KEY is ${keyId}`)
      const sealed = Buffer.from(body, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'), {
        authTagLength: tagBytes,
      }).setAAD(associated(place))
      decipher.setAuthTag(sealed.subarray(-tagBytes))
      return Buffer.concat([decipher.update(sealed.subarray(0, -tagBytes)), decipher.final()]).toString('utf8')
    },
  }
}

const associated = ({ table, row, column }: SealedPlace) => Buffer.from(JSON.stringify([table, row, column]))
