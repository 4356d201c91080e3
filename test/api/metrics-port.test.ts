import { expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { checkPorts } from '../../src/http/port.ts'
import { freePort, installation } from '../support/kit.ts'

/** METRICS_PORT: metrics and health on a port of their own, which no proxy publishes. */

const port = await freePort()
const there = await installation({ workers: 'none', metricsPort: port })

const beside = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method })
const inPublic = (url: string) => there.app.inject({ url, headers: { accept: 'application/json' } })

test('is off by default: the metrics are with the API', async () => {
  expect(readConfig({}).metricsPort).toBeNull()
  const other = await installation({ workers: 'none' })
  expect((await other.app.inject('/-/metrics/')).statusCode).toBe(200)
})

test('the metrics are there, and not on the public port', async () => {
  for (const path of ['/-/metrics/', '/-/metrics']) {
    const answer = await beside(path)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/plain/)])
    expect(await answer.text()).toContain('gatewright_up{part="database"} 1')
    expect((await inPublic(path)).statusCode).toBe(404)
  }
})

test('health is on both: probes and load balancers ask the port that they use', async () => {
  for (const path of ['/-/health/live/', '/-/health/ready/', '/-/health/applies/']) {
    const [one, other] = [await beside(path), await inPublic(path)]
    expect([one.status, Object.keys(Object(await one.json()))]).toEqual([other.statusCode, Object.keys(other.json())])
  }
})

test('nothing else is there', async () => {
  for (const path of ['/', '/docs/', '/admin/', '/api/v3/core/users/me/', '/api/v3/schema/'])
    expect([path, (await beside(path)).status]).toEqual([path, 404])
  expect((await beside('/-/metrics/', 'POST')).status).toBe(404)
})

test('a port that is taken is named with its setting', async () => {
  const config = { port: await freePort(), host: '127.0.0.1' }
  await expect(checkPorts({ ...config, metricsPort: port })).rejects.toThrow(/METRICS_PORT=<number>/)
  await checkPorts({ ...config, metricsPort: null })
  await checkPorts({ ...config, metricsPort: await freePort() })
})

test('it closes with the API, and drains with it', async () => {
  const own = await freePort()
  const { app } = await installation({ workers: 'none', metricsPort: own })
  const ready = async () => Object(await (await fetch(`http://127.0.0.1:${own}/-/health/ready/`)).json()).detail
  expect(await ready()).toBeUndefined()
  app.drain()
  expect(await ready()).toContain('This API is stopping')
  await app.close()
  await expect(fetch(`http://127.0.0.1:${own}/-/metrics/`)).rejects.toThrow()
})
