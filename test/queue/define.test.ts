import { expect, test } from 'vitest'
import { jobId } from '../../src/queue/define.ts'

test('a job id names its run and attempt', () => {
  const run = '01a1fd79-0573-7eeb-91d6-996288491dcb'
  expect(jobId(run, 3)).toBe(`run-${run}-3`)
})
