import { expect, test } from 'vitest'
import { jobId, runOfJob } from '../../src/queue/define.ts'

test('a job id names its run and attempt', () => {
  const run = '01a1fd79-0573-7eeb-91d6-996288491dcb'
  expect(jobId(run, 3)).toBe(`run-${run}-3`)
  expect(runOfJob(jobId(run, 12))).toBe(run)
})

test.each([
  '',
  'probe',
  'repeat:probe:1',
  'run-x-1',
  'run-01a1fd79-0573-7eeb-91d6-996288491dcb',
  'run-01a1fd79-0573-7eeb-91d6-996288491dcb-',
])('%j is for none', (id) => {
  expect(runOfJob(id)).toBeUndefined()
})
