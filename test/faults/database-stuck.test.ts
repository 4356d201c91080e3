import { expect, test } from 'vitest'
import { nameLock } from '../../src/db/locks.ts'
import { rows, sql, within } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put } from './clients.ts'
import { openStand, type Stand, untilWorkersWaitForLocks } from './stand.ts'

/** PostgreSQL is up, but does not answer: a submission may still take effect, and no client waits for ever. */

/** Milliseconds: a refusal within a second, plus a margin for a busy machine. */
const refusedWithinMs = 1_400

async function serversOf({ postgres, db }: Stand): Promise<number[]> {
  const servers = await rows<{ pid: number }>(db, sql`SELECT pid FROM pg_stat_activity`)
  return [postgres.pid, ...servers.map(({ pid }) => pid)]
}

test('a frozen PostgreSQL counts as away, and is used again', async () => {
  const stand = await openStand('postgres')
  const worker = await stand.startWorker()
  const before = await put(stand, 'before')
  const frozen = await serversOf(stand)
  expect(frozen.length).toBeGreaterThan(5)
  for (const pid of frozen) process.kill(pid, 'SIGSTOP')
  const meanwhile = await crowd(stand, 4, 'frozen', (begun) => begun === 8).finally(() => {
    for (const pid of frozen) process.kill(pid, 'SIGCONT')
  })
  console.log(`while PostgreSQL is frozen: ${describeTimes(meanwhile)}`)
  expect([...new Set(meanwhile.map(({ status }) => status))]).toEqual([503])
  expect(Math.max(...meanwhile.map(({ ms }) => ms))).toBeLessThan(refusedWithinMs)
  const after = await crowd(stand, 1, 'after', (begun) => begun === 3)
  expect(after.at(-1)?.outcome).toBe('applied')
  expect(await audit(stand.db, [before, ...meanwhile, ...after])).toEqual([])
  await worker.stop()
})

test('submissions are refused while a table is locked, and other requests are not delayed', async () => {
  const stand = await openStand('postgres')
  const worker = await stand.startWorker()
  const before = await put(stand, 'before')
  const [refused, others] = await within(stand.databaseUrl, async (client) => {
    await client.query('BEGIN; LOCK TABLE runs IN EXCLUSIVE MODE')
    const sending = crowd(stand, 2, 'locked-out', (begun) => begun === 4)
    const times: number[] = []
    while (times.length < 20) {
      const start = performance.now()
      const answer = await fetch(`${stand.url}/api/v3/blueprints/runs/00000000-0000-7000-8000-000000000000/`, {
        headers: { authorization: `Bearer ${stand.token}` },
      })
      expect(answer.status).toBe(404)
      times.push(performance.now() - start)
    }
    return [await sending, times] as const
  })
  console.log(
    `while the runs are locked: ${describeTimes(refused)}; others at most ${Math.max(...others).toFixed(0)} ms`,
  )
  expect(refused.map(({ status }) => status)).toEqual([503, 503, 503, 503])
  expect(Math.max(...refused.map(({ ms }) => ms), ...others)).toBeLessThan(refusedWithinMs)
  const after = await put(stand, 'after')
  expect(after.outcome).toBe('applied')
  expect(await audit(stand.db, [before, ...refused, after])).toEqual([])
  await worker.stop()
})

test('a statement of the worker that runs out of time is tried again', async () => {
  const stand = await openStand('postgres')
  const worker = await stand.startWorker()
  const sent = await within(stand.databaseUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [nameLock('applications', ['slow'])])
    const sending = put(stand, 'slow')
    await untilWorkersWaitForLocks(stand, 1)
    // The same error (57014) as that of a statement time-out.
    await client.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'gatewright-worker' AND wait_event_type = 'Lock'`)
    await worker.line(/"msg":"trying the run again"/)
    await client.query('SELECT pg_advisory_unlock_all()')
    return sending
  })
  expect(sent.outcome).toBe('applied')
  expect(await audit(stand.db, [sent])).toEqual([])
  await worker.stop()
})

test('a check that the database does not answer is refused when the wait is over, and nothing is recorded', async () => {
  const stand = await openStand('postgres', { applyWaitMs: 2_000, proxied: 'postgres' })
  const worker = await stand.startWorker()
  void stand.proxy?.holdBack('held-back')
  const sent = await put(stand, 'held-back')
  expect(sent.status).toBe(503)
  expect(sent.ms).toBeLessThan(2_000 + 1_000)
  expect(await stand.db.run.count()).toBe(0)
  expect(await put(stand, 'next')).toMatchObject({ status: 200 })
  await worker.stop()
})
