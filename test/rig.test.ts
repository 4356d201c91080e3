import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { gapsIn, promisedRows, rowName, testFiles } from './faults/gaps.ts'

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

test('docs/reliability.md has a row for each test of faults, and no other', async () => {
  const vitest = ['node_modules/vitest/vitest.mjs', 'list', '--project', 'faults', '--project', 'faults-roomy']
  // A test in a loop has the name of its template without --no-static-parse.
  const args = [...vitest, '--no-static-parse', '--json']
  // It ends with the servers that it started before the test gives up.
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 50_000 })
  const tests = (JSON.parse(stdout) as { name: string }[]).map(({ name }) => rowName(name))
  expect(tests.toSorted()).toEqual(promisedRows().toSorted())
}, 60_000)
