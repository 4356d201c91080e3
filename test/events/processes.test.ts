import { expect, inject, test } from 'vitest'
import { applyPath } from '../support/asker.ts'
import { freshDatabase } from '../support/database.ts'
import { type EventReader, type Received, readEvents } from '../support/events.ts'
import { freePort } from '../support/free-port.ts'
import { named } from '../support/installation.ts'
import { wideEnv } from '../support/limits.ts'
import { type Running, run } from '../support/processes.ts'
import { until } from '../support/until.ts'

/** Two processes of the API, a worker, and readers that come and go between them while runs end. */

const token = 'a-token-for-the-first-admin'
const seconds = Math.ceil(inject('rounds') * 2)
const perSecond = 50
const readers = 4

/** Mulberry32: the same draws each time. */
function drawing(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Service = { readonly urls: readonly [string, string]; stop(): Promise<void>; readonly servers: readonly Running[] }

async function start(databaseUrl: string): Promise<Service> {
  const secrets = { SECRET_KEY: 'a secret key for tests, 32 or more', BOOTSTRAP_TOKEN: token }
  const env = { ...wideEnv, ...secrets, DATABASE_URL: databaseUrl, LOG_LEVEL: 'info', APPLY_WAIT_MS: '20000' }
  const ports = [await freePort(), await freePort()]
  const servers: Running[] = []
  for (const port of ports) {
    const server = run('src/server.ts', { env: { ...env, PORT: String(port) } })
    await server.line(/"serving"/)
    servers.push(server)
  }
  const worker = run('workers/blueprint.ts', { env })
  await worker.line(/worker ready/)
  const [first, second] = ports.map((port) => `http://127.0.0.1:${port}`)
  return {
    urls: [first ?? '', second ?? ''],
    servers,
    stop: async () => {
      await Promise.all([...servers, worker].map((each) => each.stop()))
    },
  }
}

/** A client that is cut off at any moment, and comes back to any of the processes with the last id. */
class Wanderer {
  readonly seen: Received[] = []
  readonly #draw: () => number
  readonly #urls: readonly [string, string]
  #reader: EventReader | undefined
  #lastId: string | undefined

  constructor(urls: readonly [string, string], seed: number) {
    this.#urls = urls
    this.#draw = drawing(seed)
  }

  async open(): Promise<void> {
    const url = this.#draw() < 0.5 ? this.#urls[0] : this.#urls[1]
    const from = this.#lastId === undefined ? {} : { lastEventId: this.#lastId }
    const reader = await readEvents(`${url}/api/v3/blueprints/runs/events/`, { token, ...from })
    if (reader.status !== 200) {
      // There is no room before the last stream is over, or the database takes too long beside other work.
      expect([429, 503]).toContain(reader.status)
      return this.open()
    }
    this.#reader = reader
    await until(() => reader.lastId() !== '' || this.#lastId !== undefined, { what: 'the id of the place' })
  }

  close(): void {
    this.#reader?.close()
    this.#lastId = this.#reader?.lastId() || this.#lastId
    this.seen.push(...(this.#reader?.events ?? []))
    this.#reader = undefined
  }

  /** It goes and comes. */
  async wander(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await new Promise((resolve) => setTimeout(resolve, 50 + 400 * this.#draw()))
      this.close()
      await this.open()
    }
  }

  all(): readonly Received[] {
    return [...this.seen, ...(this.#reader?.events ?? [])]
  }
}

const endsOf = (events: readonly Received[]) =>
  new Map(events.filter(({ event }) => event === 'ended').map(({ id, data }) => [String(data.id), { id, data }]))

test('each reader that comes and goes has the end of each run, as it is in the ledger', {
  timeout: 300_000,
}, async () => {
  const { url, db } = await freshDatabase()
  const service = await start(url)
  let isOver = false
  const wanderers = Array.from({ length: readers }, (_, seed) => new Wanderer(service.urls, 20_261_123 + seed))
  const [, ...others] = wanderers
  // A reader that has no id yet gets what comes from its first stream on.
  for (const each of wanderers) await each.open()
  const wandering = others.map((each) => each.wander(() => isOver))

  const put = async (number: number) => {
    const body = JSON.stringify(await named('radius', `run-${number % 40}`, { app: { name: `name ${number}` } }))
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`${service.urls[number % 2]}${applyPath}`, { method: 'PUT', headers, body })
    await response.text()
    return response.status
  }
  const answers: Promise<number>[] = []
  const from = performance.now()
  for (let number = 0; number < seconds * perSecond; number += 1) {
    answers.push(put(number))
    const dueMs = from + (1_000 * number) / perSecond - performance.now()
    if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs))
  }
  const statuses = new Set(await Promise.all(answers))
  isOver = true
  await Promise.all(wandering)
  expect([...statuses].filter((status) => status >= 500 && status !== 503)).toEqual([])

  const rows = await db.run.findMany({
    select: { id: true, state: true, applied: true, reason: true, finishedAt: true },
  })
  const ledger = new Map(rows.map((row) => [row.id, row]))
  expect(ledger.size).toBeGreaterThan((seconds * perSecond) / 2)
  for (const wanderer of wanderers) {
    await until(() => endsOf(wanderer.all()).size >= ledger.size, { what: 'the last end', withinMs: 60_000 })
    const ends = endsOf(wanderer.all())
    expect(new Set(ends.keys())).toEqual(new Set(ledger.keys()))
    for (const [id, { data }] of ends) {
      const { state, applied, reason, finishedAt } = ledger.get(id) ?? expect.fail(`there is no run ${id}`)
      expect(data).toMatchObject({ state, applied, reason, finished_at: finishedAt?.toISOString() })
    }
    // Repeated with the same id, whichever process sent it.
    const ids = wanderer.all().flatMap(({ event, id, data }) => (event === 'ended' ? [`${data.id} ${id}`] : []))
    expect(new Set(ids).size).toBe(ends.size)
    const queued = new Set(wanderer.all().flatMap(({ event, data }) => (event === 'queued' ? [data.id] : [])))
    expect(queued).toEqual(new Set(ledger.keys()))
  }

  // Streams that are open hold up no process that gets SIGTERM.
  const open = await readEvents(`${service.urls[1]}/api/v3/blueprints/runs/events/`, { token })
  expect([200, 429]).toContain(open.status)
  await service.stop()
  await open.ended
  for (const each of await Promise.all(service.servers.map(({ exited }) => exited))) expect(each.code).toBe(0)
  for (const { output } of service.servers) expect(output()).not.toContain('did not stop in time')
})
