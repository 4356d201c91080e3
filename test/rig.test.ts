import { expect, test } from 'vitest'
import { gapsIn, promisedRows, rowGaps, testFiles } from './faults/gaps.ts'

/** The rig of `npm run faults`: what did not run is no success. */

const fine = testFiles().map((file) => ({ file, errors: [], states: ['passed'] }))

test('all files that ran leave no gap', () => {
  expect(testFiles().length).toBeGreaterThan(10)
  expect(gapsIn(fine, testFiles(), [])).toEqual([])
})

test.each([
  ['was not found', fine.slice(1), /it was not loaded$/],
  [
    'could not be loaded',
    [{ ...fine[0], errors: ['no such module'], states: [] }, ...fine.slice(1)],
    /no such module$/,
  ],
  ['has no test', [{ ...fine[0], states: [] }, ...fine.slice(1)], /it has no test$/],
  [
    'has a test that was skipped',
    [{ ...fine[0], states: ['passed', 'skipped'] }, ...fine.slice(1)],
    /1 of 2 tests did not run$/,
  ],
] as const)('a file that %s is one', (_, ran, gap) => {
  const [first = ''] = testFiles()
  expect(
    gapsIn(
      ran.map((each) => ({ file: first, errors: [], ...each })),
      testFiles(),
      [],
    ),
  ).toEqual([expect.stringMatching(gap)])
})

test('an error outside of any test is one', () => {
  expect(gapsIn(fine, testFiles(), ['unhandled'])).toEqual(['unhandled'])
})

test('a row that is promised and not tried is one, and one that is tried and not written down', () => {
  const promised = promisedRows()
  expect(promised.length).toBeGreaterThan(50)
  expect(rowGaps(promised, promised)).toEqual([])
  const [first = '', ...others] = promised
  expect(rowGaps(others, promised)).toEqual([`docs/reliability.md has a row that no test tries: ${first}`])
  expect(rowGaps([...promised, 'a new one'], promised)).toEqual(['docs/reliability.md has no row for: a new one'])
})
