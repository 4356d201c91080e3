import { describe, expect } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { answered, installation, lockedOut, until } from '../support/kit.ts'
import { claimsOf, endedJob, isThere, lockRunOf, operatorOf, put, runOf, statesOf } from '../support/operations.ts'

/** docs/incidents.md on a paused queue and on runs, held against the running system. */

const there = await installation({ applyWaitMs: 6_000 })
const make = statesOf(there)

const shows = claimsOf(
  ['The queue is paused', 'A run failed: whose was it?'],
  [
    // Advice.
    'To keep them private, block `/-/` at the proxy.',
    'List the runs, the newest first, with a token that has `view_run`:',
  ],
)

const listed = async (slug: string) => {
  const { json } = await there.admin.get(`/api/v3/blueprints/runs/?slug=${slug}`)
  return (json as { results: Record<string, unknown>[] }).results[0]
}

describe('The queue is paused', () => {
  const ready = async () => (await there.app.inject('/-/health/applies/')).json()

  shows(
    [
      "`GET /-/health/applies/` is 503 and says so at once, with the operator's name, the time of the pause, and the reason that the operator gave.",
      'So do the dashboard and the 503 of each apply.',
      'While the queue is paused, no worker takes a job, and PUTs get 503 `cancelled` at once; one with `Prefer: respond-async` is recorded.',
      'Resume it on the dashboard, at `/admin/resume/`.',
      'Runs that still wait are applied then.',
      'Runs that were cancelled meanwhile are not applied.',
      'Names and reasons are shown to anyone who can reach `/-/`.',
    ],
    async () => {
      const { username, act, get } = await operatorOf(there)
      // One that waits already when the queue is paused.
      await there.queue.pause()
      const before = put(there, 'paused-before')
      await there.queued(1)
      expect(await before).toMatchObject({ status: 503, json: { code: 'cancelled' } })
      await there.queue.resume()
      await act('pause', 'new disks')
      const { body: page } = await get('/admin/')
      const { pausedAt } = await there.db.queuePause.findFirstOrThrow()
      const said = `by ${username} since ${pausedAt.toISOString()} ("new disks")`
      const since = `<time datetime="${pausedAt.toISOString()}"`
      expect(page).toMatch(new RegExp(`Queue paused by ${username} ${since}[^<]*>[^<]*</time>, new disks`))
      expect((await ready()).checks.pause).toMatchObject({ ok: false, detail: expect.stringContaining(said) })
      // What an API knows of the pause is a second old at most.
      await until('a PUT at once', async () => (await put(there, 'paused')).headers['retry-after'] === '2')
      const runs = await there.db.run.count()
      await answered(503, put(there, 'paused-too-long'), { code: 'cancelled', detail: expect.stringContaining(said) })
      expect(await there.db.run.count()).toBe(runs)
      await answered(202, put(there, 'paused-a-moment', { prefer: 'respond-async' }))
      await act('resume')
      await until('the run that was recorded to be applied', () => isThere(there, 'paused-a-moment'))
      expect([await isThere(there, 'paused-too-long'), await isThere(there, 'paused-a-moment')]).toEqual([false, true])
      expect(await endedJob(there, (await runOf(there, 'paused-before')).id)).toMatchObject({ state: 'failed' })
      expect(await isThere(there, 'paused-before')).toBe(false)
    },
  )

  shows(['A queue that was paused by other means than the dashboard says that instead of a name.'], async () => {
    await there.queue.pause()
    expect((await ready()).checks.pause.detail).toContain('by other means than the dashboard')
    await there.queue.resume()
  })
})

describe('A run failed: whose was it?', () => {
  shows(
    [
      '`submitter_name`, `kind`, `slug`, `request_id` | who sent what, and in which request',
      '`applied`, `reason`, `logs` | whether it was applied; if not, one word and the sentences',
      '`summary`, `log_lines` | what it did, or why not, in one sentence; of the `logs`, a list has the first 20 lines of so many',
      '`queue_ms`, `work_ms` | milliseconds before a worker began, and in the worker',
      '`done`, `applied: false` | refused; `logs` say why (a taken name, a missing permission) | The submitter fixes it.',
      'Only `done` with `applied: true` changed anything.',
    ],
    async () => {
      await put(there, 'listed')
      const common = {
        kind: 'radius',
        request_id: expect.any(String),
        queue_ms: expect.any(Number),
        work_ms: expect.any(Number),
      }
      expect(await listed('listed')).toMatchObject({
        ...{ ...common, submitter_name: 'admin', slug: 'listed', state: 'done', applied: true, reason: null },
        logs: [expect.stringContaining('created'), expect.stringContaining('created')],
        ...{ summary: '2 created', log_lines: 2 },
      })
      await make.refused('listed-refused')
      expect(await listed('listed-refused')).toMatchObject({
        ...{ ...common, state: 'done', applied: false, reason: 'permission_denied' },
        logs: ['rolled back: the submitter is gone or no longer active'],
        ...{ summary: 'rolled back: the submitter is gone or no longer active', log_lines: 1 },
      })
      expect([await isThere(there, 'listed'), await isThere(there, 'listed-refused')]).toEqual([true, false])
    },
  )

  shows(
    [
      '`state` | `queued`, `running` (a worker has it), `done`, `failed`, `cancelled`. The filter takes the stored ones: a running run is `queued` there',
    ],
    async () => {
      const release = there.hold()
      const sending = put(there, 'in-states')
      await there.queued(1)
      expect(await listed('in-states')).toMatchObject({ state: 'queued' })
      await transaction(there.db, async (tx) => {
        await lockRunOf(tx, 'in-states')
        expect(await listed('in-states')).toMatchObject({ state: 'running' })
        expect((await there.admin.get('/api/v3/blueprints/runs/?state=queued&slug=in-states')).json).toMatchObject({
          results: [{ state: 'running' }],
        })
        expect((await there.admin.get('/api/v3/blueprints/runs/?state=running')).status).toBe(400)
      })
      release()
      expect(await sending).toMatchObject({ status: 200 })
      expect(await listed('in-states')).toMatchObject({ state: 'done' })
    },
  )

  shows(
    [
      "`failed`, `server_error` | a bug or a broken database | Read its `cause`, and search the worker's log for the run's id.",
      '`failed`, `unavailable` | enqueued five times, and no worker finished it | Find out why workers die. Then send it again.',
      '`cancelled` | the service cancelled it; `logs` and `cause` say [why](#a-pipeline-got-503-cancelled) | Remove the cause. Then send it again.',
      '`cancelled`, with `cancelled_by` | that user cancelled it while it waited | Ask that user. Nothing sends it again by itself.',
    ],
    async () => {
      const bug = await make.broken('bug')
      expect(bug.answer.status).toBe(500)
      const cause = expect.stringContaining('seal')
      expect(await listed('bug')).toMatchObject({ state: 'failed', reason: 'server_error', applied: false, cause })
      const lines = there.log.map((line) => JSON.parse(line)).filter((line) => line.run === bug.id)
      expect(lines.some(({ err }) => err?.stack?.includes('sealed'))).toBe(true)
      expect((await make.exhausted('exhausted')).answer.status).toBe(503)
      expect(await listed('exhausted')).toMatchObject({ state: 'failed', reason: 'unavailable', attempts: 5 })
      expect((await make.cancelled('too-late')).answer.status).toBe(503)
      expect(await listed('too-late')).toMatchObject({ state: 'cancelled', reason: 'cancelled' })
      const { id: unwanted, answer } = await make.heldUp('unwanted', (id) =>
        there.admin.post(`/api/v3/blueprints/runs/${id}/cancel/`),
      )
      expect([answer.status, Object(answer.json).code]).toEqual([409, 'cancelled_by_user'])
      expect(answer.headers).not.toHaveProperty('retry-after')
      const { json } = await there.admin.get(`/api/v3/blueprints/runs/${unwanted}/`)
      expect(json).toMatchObject({ state: 'cancelled', cancelled_by: Object(json).submitter_name })
      for (const name of ['bug', 'exhausted', 'too-late', 'unwanted'])
        expect([name, await isThere(there, name)]).toEqual([name, false])
      expect(await put(there, 'too-late')).toMatchObject({ status: 200, json: { applied: true } })
    },
  )

  shows(
    [
      '`attempts` | how often it was enqueued. More than 1: a worker died, an attempt failed, or the queue lost the job. One that was not given a lock gives its slot back, and is not counted',
      '`cause`, `failed_attempts` | why it failed, with the SQLSTATE of PostgreSQL, and each attempt that failed, the last of a failed run too; for `view_run`',
      '`repaired`, `repaired_by` | whether a later run applied the same document or application: the failure is over then; and the next such run, if the caller sees it',
    ],
    async () => {
      const unlock = await lockedOut(there.db)
      const waiting = put(there, 'not-counted')
      const attempted = async () => (await listed('not-counted'))?.id as string
      await until(
        'an attempt without its lock',
        async () => (await there.db.runAttempt.count({ where: { runId: await attempted() } })) > 0,
      )
      await unlock()
      expect(await waiting).toMatchObject({ status: 200 })
      expect(await listed('not-counted')).toMatchObject({ state: 'done', attempts: 1 })
      const letIn = await lockedOut(there.db, '57014')
      const sending = put(there, 'enqueued-again')
      await until(
        'a second attempt',
        async () => (await there.db.run.count({ where: { slug: 'enqueued-again', attempts: 2 } })) > 0,
      )
      await letIn()
      expect(await sending).toMatchObject({ status: 200 })
      expect(await listed('enqueued-again')).toMatchObject({ state: 'done', applied: true, cause: null })
      const { id } = await there.db.run.findFirstOrThrow({ where: { slug: 'enqueued-again' } })
      expect(await there.db.runAttempt.findMany({ where: { runId: id } })).toMatchObject([{ attempt: 1 }])
      const { id: failed } = await make.broken('repaired-later')
      expect(await listed('repaired-later')).toMatchObject({ state: 'failed', repaired: false, repaired_by: null })
      expect((await put(there, 'repaired-later')).status).toBe(200)
      const { json } = await there.admin.get(`/api/v3/blueprints/runs/${failed}/`)
      const { id: by } = await there.db.run.findFirstOrThrow({ where: { slug: 'repaired-later', applied: true } })
      expect(json).toMatchObject({ repaired: true, repaired_by: by })
    },
  )
})
