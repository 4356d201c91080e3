import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { readProcesses, registerProcess } from '../../src/db/presence.ts'
import { uuid7 } from '../../src/ids.ts'
import { runFormat } from '../../src/runs/format.ts'
import { applyPath, dashboardOf, example, installation, rows, sql, until } from '../support/kit.ts'

/** Each worker says that it is there. One that is silent is named, where others still do its work, too. */

const there = await installation()

const jobs = { busy: 0, took: false }
const load = { busy: () => jobs.busy, hasTaken: () => jobs.took }
const announced = async (slots: number) => {
  const before = new Set((await readProcesses(there.db, 'workers')).map(({ id }) => id))
  const worker = registerProcess(there.db, 'workers', runFormat, { ...load, slots: () => slots })
  const added = async () => (await readProcesses(there.db, 'workers')).find(({ id }) => !before.has(id))
  const { id } = await until('the worker to be heard', added)
  return { id, stop: () => worker.stop() }
}
const silence = (id: string, seconds: number) =>
  rows(
    there.db,
    sql`UPDATE workers SET seen_at = now() - make_interval(secs => ${seconds}::float8) WHERE id = ${id}::uuid`,
  )
const readiness = async () => {
  const { status, json } = await there.as('').get('/-/health/applies/')
  return { status, detail: (json as { checks: { worker: { detail: string } } }).checks.worker.detail }
}
/** The metrics come to have these lines: what was read is kept for a second. */
const metricsHave = (name: string, lines: unknown[]) =>
  until(`${name} in the metrics`, async () => {
    const { text } = await there.as('').get('/-/metrics/')
    expect(text.split('\n').filter((line) => line.startsWith(`${name}{`))).toEqual(lines)
    return true
  })
const page = async (url = '/admin/workers/') => {
  const viewer = await there.make.user({ permissions: ['view_queue'] })
  return (await dashboardOf(there).get(viewer, url)).body
}

test('a worker is known with its version and jobs, until it stops', async () => {
  const worker = await announced(8)
  const [found] = await readProcesses(there.db, 'workers')
  expect(found).toMatchObject({
    id: worker.id,
    processId: process.pid,
    version: expect.any(String),
    slots: 8,
    busy: 0,
    takenAt: null,
  })
  Object.assign(jobs, { busy: 3, took: true })
  await until('its jobs', async () => (await readProcesses(there.db, 'workers'))[0]?.busy === 3)
  expect((await readProcesses(there.db, 'workers'))[0]?.takenAt).toBeInstanceOf(Date)
  await worker.stop()
  expect(await readProcesses(there.db, 'workers')).toEqual([])
  Object.assign(jobs, { busy: 0, took: false })
})

test('of two workers, the silent one is named by readiness, metrics and the page, and nothing is refused', async () => {
  const one = await announced(8)
  const other = await announced(4)
  // The worker of this process takes it.
  await there.admin.put(applyPath, await example('ldap'))
  await until('readiness', async () => (await readiness()).status === 200)
  expect((await readiness()).detail).toBe('A worker takes jobs.')
  const all = await page()
  expect(all).toContain('All are heard. They have 0 of 12 jobs.')
  for (const { id } of [one, other]) expect(all).toContain(`<tr id="process-${id}"`)
  await other.stop()
  const silent = await announced(4)
  await silence(silent.id, 11)
  // Else the first one would count as its replacement.
  await rows(there.db, sql`UPDATE workers SET started_at = started_at - interval '1 minute'`)
  // It is not stopped: it says nothing for the rest of this test.
  await rows(there.db, sql`CREATE RULE silent AS ON UPDATE TO workers DO INSTEAD NOTHING`)
  const { status, detail } = await readiness()
  expect(status).toBe(200)
  expect(detail).toMatch(/^A worker takes jobs\. 1 of 2 workers is silent, for \d+ s: /)
  const heardAndSilent = ['heard', 'silent'].map((state) => expect.stringMatching(`state="${state}"} 1$`))
  await metricsHave('gatewright_workers', heardAndSilent)
  await metricsHave('gatewright_worker_slots', [
    'gatewright_worker_slots{state="busy"} 0',
    'gatewright_worker_slots{state="free"} 8',
  ])
  const html = await page()
  expect(html).toContain('1 of 2 workers is silent')
  expect(html).toMatch(
    /<tr id="[^"]+"><th scope="row" class="name" title="[^"]+">[^<]+<\/th><td class="number" data-label="Process">\d+<\/td>.*silent for \d+ s.*not known/,
  )
  const now = await page('/admin/')
  expect(now).toMatch(/class="mark warn">1 worker<.*: not heard for \d+ s/)
  expect(now).toContain('>1 worker silent</a>')
  await rows(there.db, sql`DROP RULE silent ON workers`)
  await Promise.all([one.stop(), silent.stop()])
})

test('a server of the API is known with its version and submissions, until it stops', async () => {
  const load = { slots: () => 128, busy: () => 5, hasTaken: () => true }
  const server = registerProcess(there.db, 'servers', 9, load)
  const known = await until('the server to be heard', async () => (await readProcesses(there.db, 'servers'))[0])
  expect(known).toMatchObject({ processId: process.pid, version: manifest.version, format: 9, slots: 128, busy: 5 })
  expect(await page()).toContain('All are heard. They wait for 5 submissions.')
  await rows(there.db, sql`CREATE RULE silent AS ON UPDATE TO servers DO INSTEAD NOTHING`)
  await rows(
    there.db,
    sql`INSERT INTO servers (id, host, process_id, version, format, slots, seen_at)
    VALUES (${uuid7()}::uuid, 'api-b.example', 7, '0.1.9', 3, 8, now() - interval '1 minute')`,
  )
  expect(await page()).toMatch(/1 of 2 servers is silent.*api-b\.example.*silent for \d+ s/s)
  await rows(there.db, sql`DROP RULE silent ON servers`)
  await server.stop()
  expect((await readProcesses(there.db, 'servers')).map(({ host }) => host)).toEqual(['api-b.example'])
})

test('with no worker at all, the page says so', async () => {
  expect(await page()).toContain('No worker is heard: start one.')
})

test('a worker that was killed is forgotten after a quarter of an hour', async () => {
  const killed = await announced(1)
  await killed.stop()
  await rows(
    there.db,
    sql`INSERT INTO workers (id, host, process_id, version, format, slots, seen_at)
      VALUES (${killed.id}::uuid, 'gone', 1, '0.0.1', 1, 1, now() - interval '16 minutes')`,
  )
  const next = await announced(1)
  const hosts = async () => (await readProcesses(there.db, 'workers')).map(({ host }) => host)
  await until('it to be forgotten', async () => !(await hosts()).includes('gone'))
  expect(await hosts()).toHaveLength(1)
  await next.stop()
})
