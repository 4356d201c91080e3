import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { mutantsOf, mutated } from './generate.ts'
import { mutantsIn, rooms } from './rooms.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const allOf = (text: string) => mutantsOf('a.ts', text).map((mutant) => mutated(text, mutant))

test.each([
  ['if (a < b) go = 1', ['if (true) go = 1', 'if (false) go = 1', 'if (a <= b) go = 1']],
  ['x = a && !b ? 1 : 2', ['x = true ? 1 : 2', 'x = false ? 1 : 2', 'x = a || !b ? 1 : 2', 'x = a && b ? 1 : 2']],
  ['x = all.some(is)', ['x = all.every(is)']],
  ['x = all.filter(is)', ['x = all']],
  ['await lock(row)', [';']],
  ["throw new Refusal('no')", [';']],
  ['q = `SELECT 1 FROM t WHERE a IS NULL FOR UPDATE`', [' IS NOT NULL FOR UPDATE`', ' IS NULL`']],
])('the mutants of %s', (text, expected) => {
  const found = allOf(text)
  expect(found).toHaveLength(expected.length)
  for (const each of expected) expect(found).toContainEqual(expect.stringContaining(each))
})

test('words in a log, and what the types exclude, are no rules', () => {
  expect(allOf("log.info('done')")).toEqual([])
  expect(allOf("if (row === undefined) throw new Error('a bug')").filter((text) => text.includes('if (true)'))).toEqual(
    [],
  )
})

test('each room has mutants, and tests that are there', () => {
  for (const room of Object.values(rooms)) {
    expect(mutantsIn(room, '1').length).toBeGreaterThan(500)
    expect(room.tests.filter((path) => !existsSync(join(root, path)))).toEqual([])
  }
})

test('a seed gives the order', () => {
  const room = { sources: ['src/waits'], tests: [] }
  const drawn = mutantsIn(room, '1')
  expect(mutantsIn(room, '1')).toEqual(drawn)
  expect(mutantsIn(room, '2')).not.toEqual(drawn)
  expect(mutantsIn(room, '2')).toEqual(expect.arrayContaining(drawn))
})
