import { readdir, readFile, readlink } from 'node:fs/promises'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { readConfig } from '../../src/config.ts'
import { readProcesses } from '../../src/db/presence.ts'
import { startStack } from '../api/stack.ts'
import { example, freePort, freshDatabase, needs, run, until } from '../support/kit.ts'
import { counted, of, promtool, samplesOf } from '../support/metrics.ts'

/** The metrics that a worker process serves of itself. */

const get = (port: number, path = '/-/metrics/', method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method })

test('are off by default, and on the loopback when they are on', () => {
  expect(readConfig({})).toMatchObject({ workerMetricsPort: null, workerMetricsHost: '127.0.0.1' })
})

describe('of a worker process', () => {
  test('show its slots, its connections and what it has counted, to this machine alone', async () => {
    const { url, db } = await freshDatabase()
    const stack = await startStack({ databaseUrl: url, redisUrl: null })
    const port = await freePort()
    const worker = await stack.startWorker({ WORKER_METRICS_PORT: String(port), WORKER_CONCURRENCY: '3' })
    expect((await stack.put(await example('radius'))).status).toBe(200)
    const done = 'gatewright_worker_runs_ended_total{mode="apply",kind="radius",outcome="applied",reason="none"}'
    const read = async () => samplesOf(await (await get(port)).text())
    await until('the run to be counted', async () => (await read()).get(done) === 1)
    const samples = await read()
    expect(counted(samples, 'gatewright_worker_runs_ended_total')).toEqual({ [done]: 1 })
    expect(samples.get('gatewright_worker_run_work_seconds_count')).toBe(1)
    expect(samples.get('gatewright_worker_run_attempts_failed_total{cause="lost"}')).toBe(0)
    const slots = Object.values(of(samples, 'gatewright_worker_process_slots')).reduce((a, b) => a + b)
    expect(slots).toBe(3)
    expect(Object.values(of(samples, 'gatewright_pool_connections')).reduce((a, b) => a + b)).toBe(6)
    expect([...samples.keys()].some((key) => key.startsWith('gatewright_build_info{program="worker"'))).toBe(true)
    expect(samples.get('process_cpu_seconds_total')).toBeGreaterThan(0)

    for (const [table, slots] of [
      ['workers', 3],
      ['servers', expect.any(Number)],
    ] as const) {
      const known = await until(`the last that one of the ${table} took`, async () =>
        (await readProcesses(db, table)).find(({ takenAt }) => takenAt !== null),
      )
      expect([table, known]).toEqual([table, expect.objectContaining({ slots, version: manifest.version })])
    }

    expect((await get(port, '/')).status).toBe(404)
    const posted = await get(port, '/-/metrics/', 'POST')
    expect([posted.status, posted.headers.get('Allow')]).toEqual([405, 'GET, HEAD'])
    const others = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    for (const { address, family } of others.filter(({ internal }) => !internal)) {
      const outside = request({ host: address, port, path: '/-/metrics/', family: family === 'IPv6' ? 6 : 4 }).end()
      const [error] = await new Promise<[NodeJS.ErrnoException | null]>((resolve) => {
        outside.on('error', (failure) => resolve([failure]))
        outside.on('response', () => resolve([null]))
      })
      expect([address, error?.code]).toEqual([address, expect.stringMatching(/ECONNREFUSED|EINVAL|ENETUNREACH/)])
    }
    expect(await worker.stop()).toMatchObject({ code: 0 })
  })

  test('on a port that is taken, the worker does not start, and says which setting to change', async () => {
    const { url } = await freshDatabase()
    const port = await freePort()
    const taker = createServer().listen(port, '127.0.0.1')
    const stack = await startStack({ databaseUrl: url, redisUrl: null })
    const worker = run('workers/blueprint.ts', { env: { ...stack.env, WORKER_METRICS_PORT: String(port) } })
    expect((await worker.exited).code).toBe(1)
    expect(worker.output()).toContain(
      `The metrics of the worker cannot be served on port ${port} of 127.0.0.1 (EADDRINUSE): set another WORKER_METRICS_PORT`,
    )
    taker.close()
  })

  test('without the setting, it listens nowhere', async () => {
    const { url } = await freshDatabase()
    const stack = await startStack({ databaseUrl: url, redisUrl: null })
    const worker = await stack.startWorker()
    const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/${worker.pid}/net/${name}`, 'utf8')))
    const own = await socketsOf(worker.pid)
    const listening = tables
      .flatMap((text) => text.trim().split('\n').slice(1))
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === '0A' && own.has(inode ?? ''))
    expect(own.size).toBeGreaterThan(0)
    expect(listening).toEqual([])
    await worker.stop()
  })
})

/** The sockets of a process, by their inodes (proc(5)). */
async function socketsOf(pid: number): Promise<Set<string>> {
  const files = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => '')))
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
}

test.runIf(needs('promtool'))("promtool: finds nothing to say about a worker's scrape", async () => {
  const { url } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  const port = await freePort()
  const worker = await stack.startWorker({ WORKER_METRICS_PORT: String(port) })
  const input = await (await get(port)).text()
  expect(await promtool(['check', 'metrics'], { input })).toEqual({ code: 0, output: '' })
  await worker.stop()
})
