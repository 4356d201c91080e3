import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { isSameOrigin } from '../../../src/http/dashboard/headers.ts'
import { sessionLifetimeS, signedSessions } from '../../../src/http/dashboard/session.ts'

const key = Buffer.alloc(32, 1)
const start = 1_800_000_000
const token = '01890a5d-ac96-774b-bcce-b302099a8057'

describe('a session', () => {
  const issued = signedSessions(key, () => start).issue(token)
  const at = (nowS: number) => signedSessions(key, () => nowS)
  const signed = (claim: string) => `${claim}.${createHmac('sha256', key).update(claim).digest('base64url')}`

  test('names its token until it expires', () => {
    expect(at(start).read(issued)).toBe(token)
    expect(at(start + sessionLifetimeS - 1).read(issued)).toBe(token)
    expect(at(start + sessionLifetimeS).read(issued)).toBeUndefined()
  })

  test('is not read under another key', () => {
    expect(signedSessions(Buffer.alloc(32, 2), () => start).read(issued)).toBeUndefined()
  })

  test.each([
    ['nothing', undefined],
    ['an empty value', ''],
    ['another token', issued.replace(/^0/, '1')],
    ['a later expiry', issued.replace(String(start + sessionLifetimeS), String(start + 2 * sessionLifetimeS))],
    ['an altered signature', issued.slice(0, -2) + (issued.at(-2) === 'A' ? 'B' : 'A') + issued.at(-1)],
    ['a cut signature', issued.slice(0, -1)],
    ['no signature', issued.slice(0, issued.lastIndexOf('.'))],
    ['more behind it', `${issued}x`],
    ['a signed claim that is none', signed(`${token}.never`)],
    ['a signed claim of no token', signed(`42.${start + 60}`)],
    ['a signed claim of a longer form', signed(`${token}.${start + 60}.1`)],
  ])('is refused: %s', (_, cookie) => {
    expect(at(start).read(cookie)).toBeUndefined()
  })
})

describe('the same origin', () => {
  test.each([
    ['http://127.0.0.1:9000', '127.0.0.1:9000', true],
    ['https://id.example.com', 'id.example.com', true],
    ['https://id.example.com', 'ID.example.com', true],
    ['https://evil.example.com', 'id.example.com', false],
    ['http://127.0.0.1:9001', '127.0.0.1:9000', false],
    ['https://id.example.com.evil.com', 'id.example.com', false],
    ['null', 'id.example.com', false],
    ['', '', false],
    ['file://id.example.com', 'id.example.com', false],
    [undefined, 'id.example.com', false],
    ['https://id.example.com', undefined, false],
  ])('%s on %s: %s', (origin, host, same) => {
    expect(isSameOrigin(origin, host)).toBe(same)
  })
})
