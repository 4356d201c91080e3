import { expect, test } from 'vitest'
import { locks, nameLock } from '../../src/db/locks.ts'

test('every advisory lock has a number of its own', () => {
  const numbers = Object.values(locks)
  expect(new Set(numbers).size).toBe(numbers.length)
})

test('the lock of a name depends on the table and on each identifier, and fits into 64 bits', () => {
  const names: [string, readonly unknown[]][] = [
    ['users', ['ada']],
    ['groups', ['ada']],
    ['groups', ['ada', '']],
    ['groups', ['a', 'da']],
    ['groups', [1]],
    ['groups', ['1']],
  ]
  const keys = names.map(([table, identifiers]) => nameLock(table, identifiers))
  expect(new Set(keys).size).toBe(names.length)
  expect(nameLock('users', ['ada'])).toBe(keys[0])
  for (const key of keys) expect(BigInt.asIntN(64, BigInt(key))).toBe(BigInt(key))
})
