import { createDecipheriv, hkdfSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keyring } from '../../src/db/seal.ts'

const secret = 'a secret key of more than 32 characters'
const place = { table: 'providers', row: '7', column: 'client_secret' }

const otherText = (character: string) => (character === 'A' ? 'B' : 'A')

describe('a sealed value', () => {
  test.each([
    ['nothing', ''],
    ['ASCII', 'hunter2'],
    ['more than ASCII', 'ünïcödé 🗝️'],
    ['long', 'x'.repeat(100_000)],
  ])('opens in its own place: %s', (_, text) => {
    expect(keyring(secret).open(keyring(secret).seal(text, place), place)).toBe(text)
  })

  test('shows neither its plaintext nor whether two are equal', () => {
    const { seal } = keyring(secret)
    expect(seal('hunter2', place)).not.toContain('hunter2')
    expect(seal('hunter2', place)).not.toBe(seal('hunter2', place))
  })

  test.each([
    ['table', { ...place, table: 'tokens' }],
    ['row', { ...place, row: '8' }],
    ['column', { ...place, column: 'shared_secret' }],
    ['split of the same letters', { table: 'providers7', row: '', column: 'client_secret' }],
  ])('does not open in another %s', (_, other) => {
    const { seal, open } = keyring(secret)
    expect(() => open(seal('hunter2', place), other)).toThrow()
  })

  test('does not open when one character was altered, wherever it is', () => {
    const { seal, open } = keyring(secret)
    // Eight bytes and the tag fill whole base64 groups: no bit of the envelope is unused.
    const envelope = seal('hunter2!', place)
    for (let index = 0; index < envelope.length; index += 1) {
      const character = envelope.charAt(index)
      const altered = envelope.slice(0, index) + otherText(character) + envelope.slice(index + 1)
      expect(() => open(altered, place), `character ${index}: ${altered}`).toThrow()
    }
  })

  test('does not open when it was cut short: a shorter tag is easier to guess', () => {
    const { seal, open } = keyring(secret)
    const [version, id, nonce = '', body = ''] = seal('', place).split('.')
    for (const bytes of [0, 4, 8, 12, 15]) {
      const cut = Buffer.from(body, 'base64url').subarray(0, bytes).toString('base64url')
      expect(() => open([version, id, nonce, cut].join('.'), place), `${bytes} bytes`).toThrow()
    }
  })

  test.each(['', 'hunter2', 'v1', 'v1..', 'v2', 'v3.a.b.c'])('is not just any text: %j', (text) => {
    expect(() => keyring(secret).open(text, place)).toThrow('not a sealed value')
  })

  test('has a key of its own for each record: no nonce is used up for all', () => {
    const { seal } = keyring(secret)
    const [, , nonce = '', body] = seal('hunter2', place).split('.')
    const master = Buffer.from(hkdfSync('sha256', secret, 'gatewright', 'seal', 32))
    const keyOf = (row: string) =>
      Buffer.from(hkdfSync('sha256', master, 'gatewright record', JSON.stringify([place.table, row]), 32))
    const open = (key: Buffer) => {
      const sealed = Buffer.from(body ?? '', 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
        .setAAD(Buffer.from(JSON.stringify([place.table, place.row, place.column])))
        .setAuthTag(sealed.subarray(-16))
      return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]).toString()
    }
    expect(open(keyOf('7'))).toBe('hunter2')
    expect(() => open(keyOf('8'))).toThrow()
    expect(() => open(master)).toThrow()
  })

  test('opens under the previous key too, and is sealed under the present one', () => {
    const [before, both, after] = [keyring(secret), keyring(`${secret}!`, secret), keyring(`${secret}!`)]
    expect(both.open(before.seal('hunter2', place), place)).toBe('hunter2')
    for (const each of [after, both]) expect(each.open(both.seal('hunter2', place), place)).toBe('hunter2')
    expect([before, both].map(({ seal }) => seal('hunter2', place).startsWith(both.prefix))).toEqual([false, true])
  })

  test('is refused by name when it was sealed under another SECRET_KEY', () => {
    const envelope = keyring(secret).seal('hunter2', place)
    expect(() => keyring(`${secret}!`).open(envelope, place)).toThrow(
      /^sealed under key [\w-]{8}, but SECRET_KEY is [\w-]{8}$/,
    )
  })
})

test('keys for other purposes differ from each other and from those of another secret', () => {
  const keys = [
    keyring(secret).derive('session'),
    keyring(secret).derive('csrf'),
    keyring(`${secret}!`).derive('session'),
  ]
  expect(keys.map((key) => key.length)).toEqual([32, 32, 32])
  expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(3)
  expect(keyring(secret).derive('session')).toEqual(keyring(secret).derive('session'))
})
