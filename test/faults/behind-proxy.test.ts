import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { freePort, needs, run, until } from '../support/kit.ts'
import { submission, type Target } from './clients.ts'
import { untilReady } from './readiness.ts'
import { applyPath, isApplied, send } from './requests.ts'
import { startShippedProxy } from './shipped-proxy.ts'
import { openStand } from './stand.ts'

/** While nothing can be applied, pages and reads work behind the shipped proxy, and a PUT gets the answer of an API. */

/** Two checks of the proxy, and the time in which a stopped worker is noticed. */
const noticedMs = { proxy: 3_000, worker: 12_000 } as const

/** A browser that is logged in. */
async function logIn({ url, token }: Target) {
  const post = (path: string, fields: Record<string, string>, cookie = '') =>
    fetch(`${url}${path}`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: url, cookie, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields),
    })
  const answer = await post('/admin/login/', { access_token: token })
  const [cookie = ''] = (answer.headers.get('set-cookie') ?? '').split(';')
  return {
    act: async (name: 'pause' | 'resume') => (await post(`/admin/${name}/`, { reason: 'a test' }, cookie)).status,
    status: async (path: string) => (await fetch(`${url}${path}`, { headers: { cookie, accept: 'text/html' } })).status,
  }
}

describe.runIf(needs('redis-server', 'haproxy'))('two APIs behind the shipped proxy', () => {
  test('serve pages and reads, and refuse PUTs themselves, without a queue, a worker or Redis', {
    timeout: 240_000,
  }, async () => {
    const stand = await openStand('redis', { applyWaitMs: 3_000 })
    const ports = [Number(stand.env.PORT), await freePort()]
    const other = run('src/server.ts', { env: { ...stand.env, PORT: String(ports[1]) } })
    let worker = await stand.startWorker()
    for (const port of ports) await untilReady({ url: `http://127.0.0.1:${port}` })
    const target = { url: await startShippedProxy([...ports, await freePort()]), token: stand.token }
    const browser = await logIn(target)
    let puts = 0
    const put = () => {
      puts += 1
      return send(target, 'PUT', applyPath, { body: submission(`behind-${puts}`, 'behind the proxy') })
    }
    const untilApplied = () => until('a PUT to be applied', async () => isApplied(await put()), { withinMs: 30_000 })
    const expectServed = async (why: RegExp, pages: readonly string[] = ['/admin/resume/']) => {
      for (const path of ['/', '/docs/', '/admin/', '/admin/runs/', '/admin/applications/', ...pages])
        expect([path, await browser.status(path)]).toEqual([path, 200])
      expect((await send(target, 'GET', '/core/applications/')).status).toBe(200)
      const refused = await put()
      expect(refused).toMatchObject({ status: 503, text: expect.stringMatching(/"code":"(cancelled|unavailable)"/) })
      const health = await fetch(`${target.url}/-/health/applies/`)
      expect([health.status, await health.text()]).toEqual([503, expect.stringMatching(why)])
    }
    await untilApplied()

    expect(await browser.act('pause')).toBe(303)
    await delay(noticedMs.proxy)
    await expectServed(/The queue is paused/)
    expect(await browser.act('resume')).toBe(303)
    await untilApplied()

    await worker.kill()
    await delay(noticedMs.worker)
    await expectServed(/No worker has taken a job for/)
    worker = await stand.startWorker()
    await untilApplied()

    await stand.redis?.kill()
    await delay(noticedMs.proxy)
    // Whether the queue is paused, only Redis knows.
    await expectServed(/The queue does not answer/, [])
    await stand.redis?.start()
    await untilApplied()
    for (const each of [other, worker]) await each.stop()
  })
})
