import { expect, test } from 'vitest'
import { randomText, sha256, uuid7 } from '../src/ids.ts'

test('a UUID is of version 7 and the RFC variant', () => {
  for (let round = 0; round < 1_000; round += 1) {
    expect(uuid7()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  }
})

test('a UUID begins with the time it was made', () => {
  const before = Date.now()
  const made = Number.parseInt(uuid7().replaceAll('-', '').slice(0, 12), 16)
  expect(made).toBeGreaterThanOrEqual(before)
  expect(made).toBeLessThanOrEqual(Date.now())
})

test('UUIDs do not repeat', () => {
  expect(new Set(Array.from({ length: 20_000 }, uuid7)).size).toBe(20_000)
})

test.each([0, 1, 30, 500])('random text of %i characters is that long and base62', (length) => {
  expect(randomText(length)).toMatch(new RegExp(`^[0-9A-Za-z]{${length}}$`))
})

test('random text prefers no character', () => {
  const counts = new Map<string, number>()
  for (const character of randomText(62_000)) counts.set(character, (counts.get(character) ?? 0) + 1)
  expect(counts.size).toBe(62)
  // 1 000 expected of each, with a standard deviation of 32: seven of those either way.
  expect(Math.min(...counts.values())).toBeGreaterThan(775)
  expect(Math.max(...counts.values())).toBeLessThan(1_225)
})

test('SHA-256 is that of the UTF-8 text', () => {
  expect(sha256('é').toString('hex')).toBe('4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
})
