import { expect, test } from 'vitest'
import { audit } from './auditor.ts'
import { put } from './clients.ts'
import { openStand } from './stand.ts'

test('a record that the network delivers after the 202 writes nothing: a 404 of its Location is final', {
  timeout: 120_000,
}, async () => {
  const stand = await openStand('postgres', { applyWaitMs: 5_000, proxied: 'postgres' })
  const { proxy } = stand
  if (proxy === null) throw new Error('the stand has no proxy')
  // The prepared statements exist from here on.
  const worker = await stand.startWorker()
  const log = [await put(stand, 'before')]
  const held = proxy.holdBack('apply oauth2 delayed')
  const sending = put(stand, 'delayed')
  const release = await held
  proxy.freeze(true)
  const sent = await sending
  proxy.freeze(false)
  log.push(sent)
  expect(sent.status).toBe(202)
  const [, path] = /stands at (\S+); if/.exec(JSON.parse(sent.text).detail) ?? []
  const read = async () =>
    (await fetch(`${stand.url}${path}`, { headers: { authorization: `Bearer ${stand.token}` } })).status
  expect.soft(await read()).toBe(404)
  release()
  // The reconciler would have enqueued it by now.
  for (let times = 0; times < 3; times += 1) log.push(await put(stand, `after-${times}`))
  await stand.db.application.findFirstOrThrow({ where: { slug: 'after-2' } })
  expect(await read()).toBe(404)
  expect(await stand.db.application.count({ where: { slug: 'delayed' } })).toBe(0)
  expect(await audit(stand.db, log)).toEqual([])
  await worker.stop()
})
