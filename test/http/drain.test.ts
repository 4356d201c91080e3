import { expect, test } from 'vitest'
import { beat } from '../../src/queue/heartbeat.ts'
import { installation } from '../support/kit.ts'

test('an API that drains is not ready, serves all else, and closes each connection after its answer', async () => {
  const there = await installation()
  await beat(there.db)
  const ready = () => there.admin.get('/-/health/ready/')
  expect(await ready()).toMatchObject({ status: 200, headers: { connection: 'keep-alive' } })
  there.app.drain()
  expect(await ready()).toMatchObject({
    status: 503,
    headers: { connection: 'close' },
    json: { status: 'not_ready', detail: expect.stringMatching(/^Not ready\. This API is stopping/) },
  })
  expect(await there.admin.get('/-/health/live/')).toMatchObject({ status: 200, headers: { connection: 'close' } })
  expect(await there.admin.submit('radius', 'while-draining')).toMatchObject({
    status: 200,
    headers: { connection: 'close' },
    json: { applied: true },
  })
})
