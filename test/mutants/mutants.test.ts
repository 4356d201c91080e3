import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { mutants } from './list.ts'
import { mutate } from './mutant.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('each mutant', () => {
  test.each(mutants)('$file: $why', ({ tests, ...mutant }) => {
    const mutated = mutate(readFileSync(join(root, mutant.file), 'utf8'), mutant)
    // Text that does not parse would be noticed by every test.
    expect(() => stripTypeScriptTypes(mutated)).not.toThrow()
    expect(tests.filter((path) => !existsSync(join(root, path)))).toEqual([])
    expect(tests.length).toBeGreaterThan(0)
  })
})

test('no two are the same', () => {
  expect(new Set(mutants.map(({ file, from, to }) => [file, from, to].join('\n'))).size).toBe(mutants.length)
})

test('what does not apply once, or changes nothing, is no mutant', () => {
  const file = 'src/a.ts'
  expect(mutate('if (a < b) return', { file, from: 'a < b', to: 'a <= b' })).toBe('if (a <= b) return')
  expect(() => mutate('a < b', { file, from: 'c', to: 'd' })).toThrow('has 0 times')
  expect(() => mutate('a, a', { file, from: 'a', to: 'd' })).toThrow('has 2 times')
  expect(() => mutate('a', { file, from: 'a', to: 'a' })).toThrow('changes nothing')
  expect(() => mutate('a\nb', { file, from: 'a\nb', to: 'a' })).toThrow('one line')
})
