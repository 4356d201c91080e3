import { isDeepStrictEqual } from 'node:util'
import { describe, expect } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { applyQueue, jobId } from '../../src/queue/define.ts'
import { runQueue } from '../../src/queue/enqueue.ts'
import { cleanUp } from '../../src/queue/maintenance.ts'
import { installation, lockedOut, until } from '../support/kit.ts'
import { claimsOf, endedJob, isThere, lockRunOf, operatorOf, put, runOf, statesOf } from '../support/operations.ts'

/** docs/incidents.md on answers and on jobs, held against the running system. */

const there = await installation({ applyWaitMs: 4_000 })
const make = statesOf(there)

const shows = claimsOf(['A pipeline got 202 `outcome_unknown`', "The dashboard's failed list is not empty"])

describe('A pipeline got 202 `outcome_unknown`', () => {
  shows(
    [
      'A worker had the run and did not finish in time, or the database went away or accepted no more changes in the middle.',
      '`Location` names the run.',
      'Read it until its state is `done`, `failed` or `cancelled`.',
      'Sending the same body again is always safe.',
    ],
    async () => {
      const release = there.hold()
      const sending = put(there, 'locked')
      await there.queued(1)
      const answer = await transaction(there.db, async (tx) => {
        await lockRunOf(tx, 'locked')
        release()
        return sending
      })
      const { id } = await runOf(there, 'locked')
      const location = `/api/v3/blueprints/runs/${id}/`
      expect(answer).toMatchObject({ status: 202, headers: { location }, json: { code: 'outcome_unknown' } })
      const state = async () => ((await there.admin.get(location)).json as { state: string }).state
      await until('the run to be done', async () => (await state()) === 'done')
      expect(await isThere(there, 'locked')).toBe(true)
      expect(await put(there, 'locked')).toMatchObject({ status: 200, json: { applied: true } })
      expect(await there.db.application.count({ where: { slug: 'locked' } })).toBe(1)
    },
  )

  shows(
    ['A 404 is final: the run was never recorded or a crash lost it, and nothing was or will be applied.'],
    async () => {
      const { id } = await make.vanished('lost-later')
      expect(await there.admin.get(`/api/v3/blueprints/runs/${id}/`)).toMatchObject({ status: 404 })
      await endedJob(there, id)
      expect(await isThere(there, 'lost-later')).toBe(false)
    },
  )
})

describe("The dashboard's failed list is not empty", () => {
  shows(
    [
      'A job ends when its run has ended, and shows the outcome of the run.',
      'A run that is `done` completes its job, a refusal (a taken name, a missing permission) too.',
    ],
    async () => {
      await put(there, 'completed')
      await make.refused('completed-refused')
      for (const slug of ['completed', 'completed-refused']) {
        const { id, state, applied, reason } = await runOf(there, slug)
        const address = `/api/v3/blueprints/runs/${id}/`
        expect(await endedJob(there, id)).toMatchObject({
          ...{ state: 'completed', result: { run: address, state, applied, reason } },
        })
      }
    },
  )

  shows(
    ['A job fails when its run is `failed`, `cancelled` or vanished.', 'Nothing of such a run was applied.'],
    async () => {
      const { broken: bug, exhausted, cancelled: late, vanished: lost } = make
      const jobs = { bug, exhausted, late, lost }
      const shown = {
        bug: /^failed, server_error$/,
        exhausted: /^failed, unavailable$/,
        late: /^cancelled$/,
        lost: /^vanished$/,
      }
      for (const [name, end] of Object.entries(jobs)) {
        const { id } = await end(`red-${name}`)
        const failure = expect.stringMatching(shown[name as keyof typeof shown])
        const log = expect.stringContaining(`/api/v3/blueprints/runs/${id}/`)
        expect(await endedJob(there, id)).toMatchObject({ state: 'failed', failure, log })
        expect([name, await isThere(there, `red-${name}`)]).toEqual([name, false])
      }
    },
  )

  shows(
    [
      'A delayed job is taken again after 0.5 to 10 s: an attempt failed, because of a lock or a lost connection, or the turn of its set has not come.',
      'A run with several attempts has several jobs: the board shows and counts the newest of them.',
    ],
    async () => {
      const letIn = await lockedOut(there.db)
      void put(there, 'locked-out').catch(() => {})
      await until('the run', async () => (await there.db.run.count({ where: { slug: 'locked-out' } })) > 0)
      const { id } = await runOf(there, 'locked-out')
      const delayed = async () => (await there.queue.getJobState(jobId(id, 1))) === 'delayed'
      await until('the job to be delayed', delayed)
      const { delay = 0 } = (await there.queue.getJob(jobId(id, 1))) ?? {}
      expect([delay >= 500, delay <= 10_000]).toEqual([true, true])
      await until('the run to be cancelled', async () => (await runOf(there, 'locked-out')).state === 'cancelled')
      await letIn()
      await there.db.run.update({ where: { id }, data: { attempts: 2 } })
      await runQueue(there.queue).enqueue({ id, title: 'again' }, 3)
      const [first, third] = [await endedJob(there, id), await endedJob(there, id, 3)]
      expect(first).toMatchObject({ state: 'failed', failure: 'cancelled' })
      expect(third).toMatchObject({ state: first.state, failure: first.failure })
      const { get } = await operatorOf(there)
      const [board] = (await get('/admin/queues/api/queues?activeQueue=apply&status=failed')).json().queues
      const shown = board.jobs.map((job: { id: string }) => job.id).filter((each: string) => each.includes(id))
      expect(shown).toEqual([jobId(id, 3)])
    },
  )

  shows(
    [
      'Workers remove completed jobs after a day, and failed ones after 7 days; sooner when there are more than 1 000 or 5 000.',
    ],
    async () => {
      const day = 24 * 3_600
      const { completed, failed } = applyQueue.kept
      expect(completed).toEqual({ age: day, count: 1_000 })
      expect(failed).toEqual({ age: 7 * day, count: 5_000 })
      const done = ['kept', 'kept-too']
      const broken = ['kept-broken', 'kept-broken-too']
      // One after the other: the two attempts of a cancelled run may end in one millisecond, and those of one go together.
      for (const slug of done) await put(there, slug)
      for (const slug of broken) await make.broken(slug)
      for (const slug of [...done, ...broken]) await endedJob(there, (await runOf(there, slug)).id)
      // The job of an earlier test may end only now.
      await until('one job of each to be left', async () => {
        await cleanUp(there.queue, { completed: { ...completed, count: 1 }, failed: { ...failed, count: 1 } })
        return isDeepStrictEqual(await there.queue.getJobCounts('completed', 'failed'), { completed: 1, failed: 1 })
      })
    },
  )

  shows(
    [
      'Each job has a link "Run" to the page of its run, for users with `view_run` and for its submitter.',
      'They also see the cause of the run as the error of its job; other users of the board see its code alone.',
      'The board itself has no actions.',
      'Users with `manage_queue` pause the queue and resume it at `/admin/`; both acts have an audit row.',
    ],
    async () => {
      await make.cancelled('to-clear')
      await endedJob(there, (await runOf(there, 'to-clear')).id)
      const { username, act, get } = await operatorOf(there)
      const [queue] = (await get('/admin/queues/api/queues?activeQueue=apply&status=failed')).json().queues
      expect(queue.readOnlyMode).toBe(true)
      for (const { externalUrl } of queue.jobs) expect(externalUrl).toMatchObject({ displayText: 'Run' })
      expect(queue.jobs[0].failedReason).toMatch(/^cancelled: ./)
      const { id } = await runOf(there, 'to-clear')
      expect((await get(`/admin/runs/${id}/`)).statusCode).toBe(200)

      const before = await there.db.run.findMany({ orderBy: { id: 'asc' } })
      for (const name of ['pause', 'resume']) {
        const { body } = await get(`/admin/${name}/`)
        expect(body).toMatch(/<li>.*Cancel.*<button type="submit">/s)
        await act(name)
      }
      expect(await there.db.run.findMany({ orderBy: { id: 'asc' } })).toEqual(before)
      const audited = await there.db.auditRow.findMany({ where: { actorName: username }, orderBy: { pk: 'asc' } })
      expect(audited.map(({ action }) => action)).toEqual(['pause_queue', 'resume_queue'])
    },
  )
})
