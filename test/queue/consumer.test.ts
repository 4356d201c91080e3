import { beforeAll, describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { jobId } from '../../src/queue/define.ts'
import { applyPath } from '../support/asker.ts'
import { type Installation, installation, named, type QueueKind } from '../support/installation.ts'
import { needs } from '../support/needs.ts'
import { until } from '../support/until.ts'

/** The result of a job is that of its run. */

function claims(queue: QueueKind): void {
  let there: Installation
  beforeAll(async () => {
    there = await installation({ queue })
  })

  /** The job of this attempt with its log, after it has ended. */
  async function ended(run: string, attempt = 1) {
    const job = await until(
      async () => {
        const found = await there.queue.getJob(jobId(run, attempt))
        return found?.finishedOn === undefined ? null : found
      },
      { what: 'the job to end' },
    )
    const { logs } = await there.queue.getJobLogs(jobId(run, attempt))
    return { state: await job.getState(), result: job.returnvalue, failure: job.failedReason, log: logs.join('\n') }
  }

  const runOf = (slug: string) => there.db.run.findFirstOrThrow({ where: { slug } })

  test('of an applied run: its result and its sentences', async () => {
    const answer = await there.admin.put(applyPath, await named('radius', 'shown'))
    expect(answer).toMatchObject({ status: 200, json: { applied: true } })
    const { id, logs } = await runOf('shown')
    expect(await ended(id)).toMatchObject({ state: 'completed', result: answer.json, log: logs.join('\n') })
    expect(logs).toHaveLength(2)
  })

  test('of a refused run: that nothing was applied, and why', async () => {
    const release = there.hold()
    const sending = there.admin.put(applyPath, await named('radius', 'twice'), { ifNoneMatch: '*' })
    await there.queued(1)
    await there.db.application.create({ data: { pk: uuid7(), name: 'Twice', slug: 'twice' } })
    release()
    expect(await sending).toMatchObject({ status: 412 })
    const { id, logs } = await runOf('twice')
    expect(logs.join()).toMatch(/^rolled back: .*is there already/)
    expect(await ended(id)).toMatchObject({
      state: 'completed',
      result: { applied: false, logs },
      log: logs.join('\n'),
    })
  })

  test('of an attempt after the run was finished: the same result', async () => {
    await there.admin.put(applyPath, await named('radius', 'again'))
    const run = await runOf('again')
    await there.enqueue(run, 2)
    const [first, second] = [await ended(run.id), await ended(run.id, 2)]
    expect(second).toEqual(first)
    expect(second).toMatchObject({ state: 'completed', result: { applied: true, logs: run.logs } })
  })

  test('of a cancelled run: it failed, and nothing was applied', async () => {
    const release = there.hold()
    const sending = there.admin.put(applyPath, await named('radius', 'cancelled'))
    await there.queued(1)
    const { id } = await runOf('cancelled')
    const why = 'not applied: no worker took it in time'
    await there.db.run.update({
      where: { id },
      data: { state: 'cancelled', reason: 'cancelled', logs: [why], finishedAt: new Date() },
    })
    release()
    expect(await ended(id)).toMatchObject({ state: 'failed', failure: `cancelled: ${why}`, log: why })
    expect(await sending).toMatchObject({ status: 503, json: { code: 'cancelled' } })
  })

  test('of no run: it failed', async () => {
    const id = '01a1fd79-0573-7eeb-91d6-996288491dcb'
    await there.enqueue({ id, title: 'apply radius gone' }, 1)
    expect(await ended(id)).toMatchObject({ state: 'failed', failure: expect.stringMatching(/^vanished: /) })
  })
}

describe("on PostgreSQL's queue", () => claims('postgres'))
describe.runIf(needs('redis-server'))('on Redis', () => claims('redis'))
