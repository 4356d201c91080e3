import { describe, expect, test } from 'vitest'
import { runQueue } from '../../src/queue/enqueue.ts'
import { addProbe } from '../../src/queue/maintenance.ts'
import { dashboardOf, installation, type Made, needs, type QueueKind, rows, sql } from '../support/kit.ts'
import { endedJob, runOf, statesOf } from '../support/operations.ts'

/** /admin/queues/: one job a run, with the reason why it was not applied. */

describe('the board of a queue on PostgreSQL', async () => claims('postgres'))
describe.runIf(needs('redis-server'))('the board of a queue on Redis', () => claims('redis'))

type Shown = { id: string; failedReason?: string; returnValue?: object; externalUrl: { href: string } }
type Answer = { counts: Record<string, number>; jobs: Shown[]; pagination: { pageCount: number }; statuses: string[] }

async function claims(queue: QueueKind): Promise<void> {
  const service = await installation({ queue })
  const dashboard = dashboardOf(service)
  const make = statesOf(service)
  const viewer = await service.make.user({ permissions: ['view_queue'] })
  const reader = await service.make.user({ permissions: ['view_queue', 'view_run'] })
  const board = async (as: Made, query = 'status=failed'): Promise<Answer> =>
    (await dashboard.get(as, `/admin/queues/api/queues?activeQueue=apply&${query}`)).json().queues[0]

  async function threeAttempts(name: string, as = service.admin): Promise<string> {
    const { id } = await make.heldUp(
      name,
      (run) => service.db.run.update({ where: { id: run }, data: { blueprint: 'v1.not.sealed.here' } }),
      as,
    )
    await service.db.run.update({ where: { id }, data: { attempts: 3 } })
    for (const attempt of [1, 2, 3]) {
      if (attempt > 1) await runQueue(service.queue).enqueue({ id, title: `apply radius ${name}` }, attempt)
      await endedJob(service, id, attempt)
    }
    return id
  }

  test('shows the newest job of each run, counts it once, and shows no probe', async () => {
    const runs = [await threeAttempts('first'), await threeAttempts('second')]
    await service.admin.submit('radius', 'applied')
    await endedJob(service, (await runOf(service, 'applied')).id)
    expect(await service.queue.getJobCounts('failed', 'completed')).toEqual({ failed: 6, completed: 1 })
    await service.queue.pause()
    try {
      await addProbe(service.queue)
      const { counts, jobs } = await board(reader)
      expect(counts).toMatchObject({ failed: 2, completed: 1, waiting: 0, active: 0 })
      expect(jobs.map(({ id }) => id)).toEqual(runs.toReversed().map((id) => `run-${id}-3`))
      const latest = await board(reader, 'status=latest')
      expect(latest.jobs.slice(1).map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
      const second = await board(reader, 'status=failed&jobsPerPage=1&page=2')
      expect([second.pagination.pageCount, second.jobs.map(({ id }) => id)]).toEqual([2, [`run-${runs[0]}-3`]])
      await runQueue(service.queue).enqueue({ id: runs[0] ?? '', title: 'again' }, 4)
      expect((await board(reader)).counts).toMatchObject({ failed: 1, waiting: 1 })
    } finally {
      await service.queue.resume()
    }
  })

  test('the error of a failed job is the cause of its run, for those who see the run', async () => {
    const submitter = await service.make.user({ permissions: ['view_queue', 'add_application', 'add_radiusprovider'] })
    const id = await threeAttempts('caused', service.as(submitter.token))
    await service.db.run.update({ where: { id }, data: { cause: 'relation "x" does not exist (42P01)' } })
    const see = async (as: Made) => {
      const one = (await dashboard.get(as, `/admin/queues/api/queues/apply/run-${id}-3`)).json().job
      const [listed] = (await board(as)).jobs
      expect(listed).toEqual(one)
      return one.failedReason
    }
    expect(await see(reader)).toBe('failed, server_error: relation "x" does not exist (42P01)')
    expect(await see(viewer)).toBe('failed, server_error')
    // The submitter sees the run, and not what view_run is for: the sentence of the run.
    expect(await see(submitter)).toMatch(/^failed, server_error: rolled back: /)
    await service.db.run.delete({ where: { id } })
    expect(await see(reader)).toBe('failed, server_error')
  })

  test('the page of a run leads to its job, and the board to the pages; times are in the zone of the caller', async () => {
    const id = await threeAttempts('linked')
    expect((await dashboard.get(reader, `/admin/runs/${id}/`)).body).toContain(
      `href="/admin/queues/queue/apply/run-${id}-3"`,
    )
    const [shown] = (await board(reader)).jobs
    expect(shown?.externalUrl).toEqual({ displayText: 'Run', href: `/admin/runs/${id}/` })
    const page = async (headers?: Record<string, string>) => {
      const { body } = await dashboard.get(reader, '/admin/queues/', headers)
      return { body, config: JSON.parse(/__UI_CONFIG__"[^>]*>([^<]+)/.exec(body)?.[1] ?? '') }
    }
    const { body, config } = await page()
    expect(body).toMatch(/<header>.*href="\/admin\/"[^>]*>Now<.*<\/header>.*<article id="root">/s)
    expect(config.dateFormats.short).toMatchObject({ timeZone: 'UTC', hourCycle: 'h23' })
    const cookie = `${await dashboard.session(reader.token)}; gatewright_zone=Europe/Berlin`
    expect((await page({ cookie })).config.dateFormats.full).toMatchObject({ timeZone: 'Europe/Berlin' })
  })
}

test('shows no sentence of a job that version 0.2.0 has ended', async () => {
  const service = await installation()
  const viewer = await service.make.user({ permissions: ['view_queue'] })
  const { id } = await statesOf(service).cancelled('earlier')
  await endedJob(service, id)
  await rows(
    service.db,
    sql`UPDATE bullmq.job SET failed_reason = 'cancelled: rolled back: secret',
          return_value = '{"run": "x", "applied": true, "logs": ["secret"]}' WHERE id = ${`run-${id}-1`} RETURNING id`,
  )
  const { body } = await dashboardOf(service).get(viewer, `/admin/queues/api/queues/apply/run-${id}-1`)
  const { job } = JSON.parse(body)
  expect(job).toMatchObject({ failedReason: 'cancelled', returnValue: { run: 'x', applied: true } })
  expect(body).not.toContain('secret')
})
