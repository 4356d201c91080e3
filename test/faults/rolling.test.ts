import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { freePort, needs, type Running, run, until } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, type Target } from './clients.ts'
import { untilReady } from './readiness.ts'
import { startShippedProxy } from './shipped-proxy.ts'
import { openStand } from './stand.ts'

/** Three APIs and three workers behind the proxy of docker-compose.yml, each restarted in turn under load. */

const drainMs = 2_500
/** A check of the proxy, twice. */
const noticedMs = 2_000
const exitWithinMs = drainMs + 10_000

type Call = { readonly what: string; readonly status: number | string }

/** Reads, creates and changes, one after the other, until it is over: each on a connection that is kept. */
async function callAll({ url, token }: Target, index: number, isOver: () => boolean): Promise<Call[]> {
  const calls: Call[] = []
  const call = async (method: string, path: string, body?: object): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    try {
      const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch(`${url}/api/v3/core/${path}`, sent)
      calls.push({ what: method, status: answer.status })
      await answer.text()
    } catch (error) {
      calls.push({ what: method, status: String((error as Error).cause ?? error) })
    }
  }
  for (let times = 0; !isOver(); times += 1) {
    await call('GET', 'users/me/')
    await call('GET', 'applications/')
    const identifier = `rolling-${index}-${times}`
    await call('POST', 'tokens/', { identifier })
    await call('PATCH', `tokens/${identifier}/`, { description: `the ${times}th` })
    await call('DELETE', `tokens/${identifier}/`)
    await delay(20)
  }
  return calls
}

describe.runIf(needs('redis-server', 'haproxy'))('queue on Redis', () => {
  test('3 APIs and 3 workers behind a proxy are restarted one after the other, under load: no request fails', {
    timeout: 300_000,
  }, async () => {
    const stand = await openStand('redis', { settings: { DRAIN_MS: String(drainMs), WORKER_CONCURRENCY: '4' } })
    const ports = [Number(stand.env.PORT), await freePort(), await freePort()]
    const direct = (index: number) => ({ url: `http://127.0.0.1:${ports[index]}` })
    const startApi = (index: number) => run('src/server.ts', { env: { ...stand.env, PORT: String(ports[index]) } })
    const apis = [stand.api, startApi(1), startApi(2)]
    const workers: Running[] = []
    for (let count = 0; count < 3; count += 1) workers.push(await stand.startWorker())
    for (const index of apis.keys()) await untilReady(direct(index))
    const target = { url: await startShippedProxy(ports), token: stand.token }
    await delay(noticedMs)

    let over = false
    const isOver = () => over
    const sending = crowd(target, 4, 'rolling', isOver)
    const calling = Promise.all([1, 2, 3].map((index) => callAll(target, index, isOver)))
    await delay(1_000)
    for (const [index, api] of apis.entries()) {
      expect(await api.stop({ withinMs: exitWithinMs })).toEqual({ code: 0, signal: null })
      apis[index] = startApi(index)
      await until('the API to answer', () =>
        fetch(`${direct(index).url}/-/health/live/`).then(
          () => true,
          () => false,
        ),
      )
      await untilReady(direct(index))
      await delay(noticedMs)
    }
    for (const [index, worker] of workers.entries()) {
      expect(await worker.stop({ withinMs: exitWithinMs })).toEqual({ code: 0, signal: null })
      workers[index] = await stand.startWorker()
    }
    over = true
    const log = await sending
    const calls = (await calling).flat()
    console.log(`rolling restart: ${describeTimes(log)}; ${calls.length} other requests`)
    const failed = calls.filter(({ status }) => typeof status === 'string' || status >= 300)
    expect(failed).toEqual([])
    expect(log.filter(({ status }) => status !== 200)).toEqual([])
    expect(new Set(calls.map(({ what }) => what))).toEqual(new Set(['GET', 'POST', 'PATCH', 'DELETE']))
    expect(log.length).toBeGreaterThan(100)
    expect(await audit(stand.db, log)).toEqual([])
    for (const each of [...apis, ...workers]) await each.stop({ withinMs: exitWithinMs })
  })
})
