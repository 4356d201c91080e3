import { expect, test } from 'vitest'
import { freePort, rows, run, sql, until } from '../support/kit.ts'
import { put, submission } from './clients.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** A process whose clock is wrong: nothing that others do depends on it. */

const hour = 3_600_000

/** The settings of a process whose clock differs by this number of milliseconds. */
const clockBy = (ms: number): Record<string, string> => {
  const shim = `const { now } = Date
    globalThis.Date = class extends Date {
      constructor(...parts) { parts.length === 0 ? super(now() + ${ms}) : super(...parts) }
      static now() { return now() + ${ms} }
    }`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shim)}` }
}

/** Waits until a worker has taken a probe after this moment. */
async function untilBeats({ db }: Stand): Promise<void> {
  const [from] = await rows<{ at: Date }>(db, sql`SELECT clock_timestamp() AS at`)
  const beat = async () => {
    const [row] = await rows<{ later: boolean }>(
      db,
      sql`SELECT consumed_at > ${from?.at} AS later FROM queue_heartbeats`,
    )
    return row?.later === true
  }
  await until('a probe to be taken', beat, { withinMs: 12_000 })
}

const isReady = async ({ url }: Stand) => (await fetch(`${url}/-/health/applies/`)).status === 200

onBothQueues((kind) => {
  test('a worker whose clock is an hour ahead does not stop the probes of the next one', {
    timeout: 120_000,
  }, async () => {
    const stand = await openStand(kind)
    const wrong = await stand.startWorker(clockBy(hour))
    const [line] = await wrong.line(/^.*"msg":"worker ready".*$/)
    expect(Math.abs(JSON.parse(line).time - Date.now() - hour)).toBeLessThan(60_000)
    await untilBeats(stand)
    await wrong.stop()
    const worker = await stand.startWorker()
    await untilBeats(stand)
    expect(await isReady(stand)).toBe(true)
    expect(await put(stand, 'afterwards')).toMatchObject({ status: 200 })
    await worker.stop()
  })
})

test('whether generated values are shown is judged by the clock of the database', { timeout: 120_000 }, async () => {
  const stand = await openStand('postgres')
  const worker = await stand.startWorker()
  const { token, url, env } = stand
  const port = await freePort()
  const ahead = run('src/server.ts', { env: { ...env, ...clockBy(48 * hour), PORT: String(port) } })
  await ahead.line(/"msg":"serving"/, { withinMs: 20_000 })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  // Its client secret is left out, and is then generated.
  const body = JSON.stringify(submission('made', 'made'), (key, value) => (key === 'client_secret' ? undefined : value))
  const applied = await fetch(`${url}/api/v3/core/transactional/applications/`, { method: 'PUT', headers, body })
  expect(applied.status).toBe(200)
  const path = applied.headers.get('content-location')
  const shown = async (port: string | number) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
    return Object.keys(JSON.parse(await answer.text()).generated)
  }
  expect(await shown(new URL(url).port)).toHaveLength(1)
  expect(await shown(port)).toHaveLength(1)
  await rows(stand.db, sql`UPDATE runs SET generated_until = now() - interval '1 second'`)
  expect([await shown(new URL(url).port), await shown(port)]).toEqual([[], []])
  await ahead.stop()
  await worker.stop()
})
