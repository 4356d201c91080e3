import { expect, test } from 'vitest'
import { avatarOf } from '../../src/views/avatar.ts'

const lettersOf = (name: string): string | undefined => {
  const avatar = avatarOf(name, {})
  const svg = Buffer.from(avatar.replace('data:image/svg+xml;base64,', ''), 'base64').toString()
  return /<text [^>]*>([^<]*)<\/text><\/svg>$/.exec(svg)?.[1]
}

test.each([
  ['Ada Lovelace', 'AL'],
  ['ada', 'A'],
  ['ada.king_noel-lovelace', 'AL'],
  ['  Ada  King   Lovelace ', 'AL'],
  ['éva 北京', 'É北'],
  ['𝒳enia 9', '𝒳9'],
  ['<script> &amp;', ''],
  ['\u0001 "', ''],
  ['', ''],
])('%j has the initials %j', (name, initials) => {
  expect(lettersOf(name)).toBe(initials)
})

test('the same name has the same picture, another has another', () => {
  expect(avatarOf('Ada', {})).toBe(avatarOf('Ada', { avatar: 1 }))
  expect(avatarOf('Ada', {})).not.toBe(avatarOf('Bea', {}))
})

test.each(['https://example.com/a.png', 'HTTPS://EXAMPLE.COM/a.png'])('the address %s is taken', (avatar) => {
  expect(avatarOf('Ada', { avatar })).toBe(avatar)
})

test.each<unknown>([
  'http://example.com/a.png',
  'javascript:alert(1)',
  'data:image/png;base64,AAAA',
  'https://',
  `https://example.com/${'a'.repeat(2_000)}`,
  { url: 'https://example.com/a.png' },
  null,
])('%j is no address', (avatar) => {
  expect(avatarOf('Ada', { avatar })).toBe(avatarOf('Ada', null))
})
