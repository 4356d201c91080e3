import { beforeAll, describe, expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { jobId } from '../../src/queue/define.ts'
import { cancelRun } from '../../src/runs/ledger.ts'
import { late } from '../../src/runs/why.ts'
import { applied, type Installation, installation, lockedOut, needs, type QueueKind, until } from '../support/kit.ts'

/** The result of a job is that of its run. */

function claims(queue: QueueKind): void {
  let there: Installation
  beforeAll(async () => {
    there = await installation({ queue })
  })

  /** The job of this attempt with its log, after it has ended. */
  const ended = (run: string, attempt = 1) => endedJob(jobId(run, attempt))
  async function endedJob(id: string) {
    const job = await until('the job to end', async () => {
      const found = await there.queue.getJob(id)
      return found?.finishedOn === undefined ? null : found
    })
    const { logs } = await there.queue.getJobLogs(id)
    return { state: await job.getState(), result: job.returnvalue, failure: job.failedReason, log: logs.join('\n') }
  }

  const runOf = (slug: string) => there.db.run.findFirstOrThrow({ where: { slug } })

  test('of an applied run: its result, without its sentences', async () => {
    await applied(there.admin.submit('radius', 'shown'))
    const { id } = await runOf('shown')
    const run = `/api/v3/blueprints/runs/${id}/`
    expect(await ended(id)).toEqual({
      state: 'completed',
      result: { run, state: 'done', applied: true, reason: null },
      failure: undefined,
      log: '',
    })
    expect(await there.admin.get(run)).toMatchObject({ status: 200, json: { id, state: 'done' } })
  })

  test('of a refused run: that nothing was applied', async () => {
    const release = there.hold()
    const sending = there.admin.submit('radius', 'twice', { ifNoneMatch: '*' })
    await there.queued(1)
    await there.db.application.create({ data: { pk: uuid7(), name: 'Twice', slug: 'twice' } })
    release()
    expect(await sending).toMatchObject({ status: 412 })
    const { id, logs } = await runOf('twice')
    expect(logs.join()).toMatch(/^rolled back: .*is there already/)
    const run = `/api/v3/blueprints/runs/${id}/`
    expect(await ended(id)).toMatchObject({
      state: 'completed',
      result: { run, state: 'done', applied: false, reason: 'precondition_failed' },
    })
    expect(JSON.stringify(await ended(id))).not.toContain('is there already')
  })

  test('of an attempt after the run was finished: the same result', async () => {
    await there.admin.submit('radius', 'again')
    const run = await runOf('again')
    await there.enqueue(run, 2)
    const [first, second] = [await ended(run.id), await ended(run.id, 2)]
    expect(second).toEqual(first)
    expect(second).toMatchObject({ state: 'completed', result: { applied: true } })
  })

  test('of an applied set: all of its entries are done', async () => {
    const total = 250
    const entries = Array.from({ length: total }, (_, index) => ({
      model: 'service_flows.flow',
      identifiers: { slug: `entry-${index}` },
      attrs: { name: 'Entry', title: 'Entry', designation: 'recovery' },
    }))
    const document = { version: 1, metadata: { name: 'many' }, entries }
    await applied(there.admin.put('/api/v3/blueprints/', document))
    const { id } = await there.db.run.findFirstOrThrow({ where: { kind: 'blueprint' } })
    await ended(id)
    const shown = async () => {
      const job = await there.queue.getJob(jobId(id, 1))
      expect(job?.progress).toEqual({ done: total, total, progress: 100 })
      return true
    }
    await until('the last progress', shown)
  })

  test('of a cancelled run: it failed, and nothing was applied', async () => {
    const release = there.hold()
    const sending = there.admin.submit('radius', 'cancelled')
    await there.queued(1)
    const { id } = await runOf('cancelled')
    const why = 'not applied: no worker took it in time'
    await there.db.run.update({
      where: { id },
      data: { state: 'cancelled', reason: 'cancelled', logs: [why], finishedAt: new Date() },
    })
    release()
    expect(await ended(id)).toMatchObject({
      state: 'failed',
      failure: 'cancelled',
      log: `see /api/v3/blueprints/runs/${id}/`,
    })
    expect(await sending).toMatchObject({ status: 503, json: { code: 'cancelled' } })
  })

  test('of a run that a bug has ended: it failed, for the reason of the run', async () => {
    const release = there.hold()
    const sending = there.admin.submit('radius', 'broken')
    await there.queued(1)
    const { id } = await runOf('broken')
    await there.db.run.update({ where: { id }, data: { blueprint: 'v1.not.sealed.here' } })
    release()
    expect(await sending).toMatchObject({ status: 500 })
    expect(await ended(id)).toMatchObject({ state: 'failed', failure: 'failed, server_error' })
  })

  test('of attempts that failed: the outcome that their runs have later, applied or cancelled', async () => {
    const stateOf = async (id: string) => (await there.queue.getJob(jobId(id, 1)))?.getState()
    const failedJobs = async () => (await there.queue.getJobs('failed')).map(({ data }) => data.run)
    const letIn = await lockedOut(there.db, '57014')
    const failOnce = async (slug: string) => {
      const sending = there.admin.submit('radius', slug)
      const { id } = await until('the run', () => there.db.run.findFirst({ where: { slug } }))
      await until('the attempt to fail', async () => (await stateOf(id)) === 'delayed')
      return { id, sending }
    }
    const [done, cancelled] = await Promise.all([failOnce('locked-out'), failOnce('given-up')])
    const now = await failedJobs()
    for (const { id } of [done, cancelled]) expect(now).not.toContain(id)

    await transaction(there.db, (tx) => cancelRun(tx, cancelled.id, late))
    await letIn()
    expect(await done.sending).toMatchObject({ status: 200, json: { applied: true } })
    expect(await cancelled.sending).toMatchObject({ status: 503, json: { code: 'cancelled' } })
    const { attempts } = await runOf('locked-out')
    expect(attempts).toBeGreaterThan(1)
    const outcome = { state: 'completed', result: { state: 'done', applied: true } }
    expect([await ended(done.id), await ended(done.id, attempts)]).toMatchObject([outcome, outcome])
    expect(await ended(cancelled.id)).toMatchObject({ state: 'failed', failure: 'cancelled' })
    expect(await failedJobs()).not.toContain(done.id)
  })

  test.each([{}, { run: 'not-a-run' }, { run: null }])(
    'of a job that names no run, %j: nothing was applied',
    async (data) => {
      const jobId = `made-by-hand-${JSON.stringify(data).length}`
      await there.queue.add('apply', data as never, { jobId })
      const job = await until(
        'the job to end',
        async () => (await there.queue.getJob(jobId))?.finishedOn && there.queue.getJob(jobId),
      )
      expect(job).toMatchObject({ returnvalue: { state: 'gone', applied: false, reason: null } })
    },
  )

  test('of no run: it failed', async () => {
    const id = '01a1fd79-0573-7eeb-91d6-996288491dcb'
    await there.enqueue({ id, title: 'apply radius gone' }, 1)
    expect(await ended(id)).toMatchObject({ state: 'failed', failure: 'vanished' })
  })
}

describe("on PostgreSQL's queue", () => claims('postgres'))
describe.runIf(needs('redis-server'))('on Redis', () => claims('redis'))
