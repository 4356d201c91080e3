import { expect, test } from 'vitest'
import { applyPath } from '../support/asker.ts'
import { readEvents } from '../support/events.ts'
import { installation, named } from '../support/installation.ts'
import { recordStatements } from '../support/statements.ts'
import { until } from '../support/until.ts'

test('nothing is read without streams, and no more than ten times a second with many', async () => {
  const recorder = await recordStatements()
  const there = await installation()
  const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
  const follow = (token: string) => readEvents(`${url}/api/v3/blueprints/runs/events/`, { token })
  const reads = () =>
    recorder.sent.filter((text) => text.includes('pg_current_snapshot') || text.includes('"isLocked"'))
  await there.admin.put(applyPath, await named('radius', 'nobody-reads'))
  expect(reads()).toEqual([])
  const from = performance.now()
  const readers = []
  for (const _ of Array.from({ length: 20 })) readers.push(await follow(await there.make.token(1)))
  for (let number = 0; number < 10; number += 1)
    await there.admin.put(applyPath, await named('radius', `many-${number}`))
  for (const reader of readers) await reader.got('ended', { count: 10 })
  const seconds = (performance.now() - from) / 1_000
  expect(reads().length).toBeLessThanOrEqual(Math.ceil(seconds * 10) + 1)
  for (const reader of readers) reader.close()
  await until(() => there.log.filter((line) => line.includes('a stream of events ended')).length === 20, {
    what: 'ends',
  })
  await until(
    async () => {
      const known = reads().length
      await new Promise((resolve) => setTimeout(resolve, 700))
      return reads().length === known
    },
    { what: 'reads to stop' },
  )
})
