import { beforeAll, expect, test } from 'vitest'
import { applyPath } from '../support/asker.ts'
import { dashboardOf } from '../support/dashboard.ts'
import { readEvents } from '../support/events.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import { until } from '../support/until.ts'

/** The stream of the operators' pages, which a session opens. */

let there: Installation
let url: string
beforeAll(async () => {
  there = await installation({ streams: { checkMs: 200 } })
  url = await there.app.listen({ port: 0, host: '127.0.0.1' })
})

const follow = (cookie: string) => readEvents(`${url}/admin/events/`, { token: 'ignored', headers: { cookie } })

const metric = async (kind: string) => {
  const { text } = await there.admin.get('/-/metrics/')
  return text.match(new RegExp(`^gatewright_streams\\{kind="${kind}"\\} (\\d+)$`, 'm'))?.[1]
}

test('a session sees what its user sees, and the stream ends with the session', async () => {
  const operator = await there.make.user({ permissions: ['view_queue'] })
  const auditor = await there.make.user({ permissions: ['view_queue', 'view_run'] })
  const dashboard = dashboardOf(there)
  const [own, all] = [
    await follow(await dashboard.session(operator.token)),
    await follow(await dashboard.session(auditor.token)),
  ]
  for (const each of [own, all]) await each.got('queue')
  expect([await metric('pages'), await metric('run'), await metric('runs')]).toEqual(['2', '0', '0'])
  await there.admin.put(applyPath, await named('radius', 'seen'))
  await all.got('ended')
  expect(own.events.filter(({ event }) => event !== 'queue')).toEqual([])
  await there.db.dashboardSession.deleteMany({})
  await Promise.all([own.ended, all.ended])
  await until(async () => (await metric('pages')) === '0', { what: 'no stream to be counted' })
  const { text } = await there.admin.get('/-/metrics/')
  expect(text).toContain('route="/admin/events/",status="200"} 2')
  expect(text).not.toContain('gatewright_http_request_seconds_count{method="GET",route="/admin/events/"}')
})

test('sixteen streams of an operator, whatever the session', async () => {
  const dashboard = dashboardOf(there)
  const operator = await there.make.user({ permissions: ['view_queue'] })
  const colleague = await there.make.user({ permissions: ['view_queue'] })
  const [cookie, other] = [await dashboard.session(operator.token), await dashboard.session(operator.token)]
  const open = []
  for (let number = 0; number < 8; number += 1) open.push(await follow(cookie), await follow(other))
  expect(open.map(({ status }) => status)).toEqual(Array(16).fill(200))
  const more = await follow(cookie)
  expect([more.status, more.headers.get('retry-after')]).toEqual([429, '1'])
  expect((await there.admin.get('/-/metrics/')).text).toContain('gatewright_rate_limited_total{limit="streams"} 1')
  // The places of the API and of others are not theirs.
  const another = await follow(await dashboard.session(colleague.token))
  expect(another.status).toBe(200)
  for (const each of [...open, another]) each.close()
})

test('without a session there is no stream', async () => {
  const answer = await fetch(`${url}/admin/events/`, { redirect: 'manual' })
  expect([answer.status, answer.headers.get('location')]).toEqual([303, '/admin/login/'])
})
