import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Conditions, nothingAllowed, unconditional } from '../../src/plan/engine.ts'
import { conditionsOf, optionsOf, storedOptions, submitterOf } from '../../src/runs/options.ts'

/** The options of a run, as its row holds them. */

const label = fc.option(fc.string({ maxLength: 20 }))
const conditions: fc.Arbitrary<Conditions> = fc.record({
  mode: fc.constantFrom('apply', 'plan'),
  reviewed: label,
  createOnly: fc.boolean(),
  replaceProvider: fc.boolean(),
  stack: label,
  reset: fc.boolean(),
  expectedKeys: fc.dictionary(fc.constantFrom('a', 'b'), fc.nat()),
  owner: label,
  allow: fc.record({ takeover: fc.boolean(), grants: fc.boolean(), deletes: fc.option(fc.nat()) }),
})

const read = (options: object) => ({ options: JSON.parse(JSON.stringify(options)) })

test('any conditions are read as they were stored', () => {
  fc.assert(
    fc.property(conditions, (given) => {
      const { reviewed, ...stored } = conditionsOf(read(storedOptions(given, {})))
      expect({ ...stored, reviewed }).toEqual({ ...given, expectedKeys: { ...given.expectedKeys } })
    }),
  )
})

test('a usual run stores what version 0.2.0 has no default for, and nothing else', () => {
  expect(storedOptions(unconditional, {})).toEqual({ createOnly: false, expectedKeys: {} })
  const options = storedOptions(
    { ...unconditional, allow: { ...nothingAllowed, deletes: 3 } },
    { ceiling: ['view_run'] },
  )
  expect(options).toEqual({ createOnly: false, expectedKeys: {}, allow: { deletes: 3 }, ceiling: ['view_run'] })
  expect(submitterOf(read(options))).toEqual({ ceiling: new Set(['view_run']), impersonator: undefined })
})

test('the owners of entries stand beside that of the run', () => {
  const run = (owner: string | null, owners: (string | null)[]) =>
    read(storedOptions({ ...unconditional, owner }, {}, owners))
  expect(run('a', ['a'])).toEqual(run('a', []))
  expect(run(null, [null])).toEqual(run(null, []))
  expect(optionsOf(run('b', ['a', null, 'b']))).toMatchObject({ owner: 'b', owners: ['a', null] })
  expect(optionsOf(read({ owner: 'a' }))).toMatchObject({ owner: 'a', owners: [] })
})

test.each([{ commit: 7 }, {}, [], 'x', 7, false])('a job is one in any form, also for the worker: %j', (pipeline) => {
  const unknown = { issuer: 'not known', rule: 'not known', subject: 'not known', repository: null, commit: null }
  expect(submitterOf(read({ pipeline })).pipeline).toMatchObject(unknown)
  expect(optionsOf(read({ pipeline }))?.pipeline).toMatchObject(unknown)
})

test.each([{}, { pipeline: null }])('no job is none: %j', (options) => {
  expect(submitterOf(read(options)).pipeline).toBeUndefined()
})
