import { beforeEach, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { causeClass } from '../../src/runs/cause.ts'
import { maxAttempts } from '../../src/runs/life.ts'
import { reconcile } from '../../src/runs/reconcile.ts'
import { reconcilerLedger } from '../../src/runs/reconciler-ledger.ts'
import { cancelStale } from '../../src/runs/retention.ts'
import type { EndedRun, Tally } from '../../src/runs/tally.ts'
import { work } from '../../src/runs/work.ts'
import { named } from '../support/kit.ts'
import { rows, sql } from '../support/sql.ts'
import { stand } from './stand.ts'

/** What workers and the reconciler count of the runs that they end. */

const ends: EndedRun[] = []
const attempts: string[] = []
const tally: Tally = {
  ended: (run) => void ends.push(run),
  attemptFailed: (cause) => void attempts.push(cause),
  workerStarted: () => {},
}
const there = await stand()
beforeEach(async () => {
  await there.db.run.deleteMany()
  ends.splice(0)
  attempts.splice(0)
})

const worker = () => ({ ...there.worker, tally })
const times = { queueMs: expect.any(Number), workMs: expect.any(Number) }

test('a worker counts a run when it has ended it, and not when it had ended before', async () => {
  const { id } = await there.recorded()
  await work(worker(), id)
  await work(worker(), id)
  expect(ends).toEqual([{ kind: 'radius', mode: 'apply', outcome: 'applied', reason: null, ...times }])
  expect(ends[0]?.workMs).toBeGreaterThan(0)
})

test('a run that has not ended is not counted, and its attempt is, by the class of its cause', async () => {
  await rows(
    there.db,
    sql`CREATE FUNCTION be_busy() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'a lock is not free' USING ERRCODE = '55P03'; END $$`,
  )
  await rows(there.db, sql`CREATE TRIGGER busy BEFORE INSERT ON providers FOR EACH ROW EXECUTE FUNCTION be_busy()`)
  const { id } = await there.recorded()
  await expect(work({ ...worker(), pause: async () => {} }, id)).rejects.toThrow('a lock is not free')
  await rows(there.db, sql`DROP TRIGGER busy ON providers`)
  expect([ends, attempts]).toEqual([[], ['lock_timeout']])
})

test('what is more than an hour old is counted as cancelled, by the worker whose job it is, and by all others', async () => {
  const age = (id: string) =>
    rows(there.db, sql`UPDATE runs SET created_at = now() - interval '61 minutes' WHERE id = ${id}::uuid`)
  const [one, other] = [await there.recorded(), await there.recorded()]
  await age(one.id)
  await work(worker(), one.id)
  await age(other.id)
  await cancelStale(there.db, worker())
  const cancelled = { kind: 'radius', mode: 'apply', outcome: 'cancelled', reason: 'stale' }
  expect(ends).toMatchObject([cancelled, cancelled])
})

test('the reconciler counts the attempts that nobody explained, and the run that it gives up', async () => {
  const queued = async (attempts: number) => {
    const id = uuid7()
    await rows(
      there.db,
      sql`INSERT INTO runs (id, title, kind, mode, request_id, blueprint, logs, attempts, enqueued_at)
        VALUES (${id}::uuid, 'plan', 'ldap', 'plan', 'r', 'sealed', '{}', ${attempts}::integer, now() - interval '10 minutes')`,
    )
    return id
  }
  await queued(1)
  await there.worker.ledger.attemptFailed(await queued(2), 'a lock that was not given', { workedMs: 1 })
  await queued(maxAttempts)
  const queue = { wake: async () => {}, enqueue: async () => {}, isQueued: async () => false }
  await reconcile(reconcilerLedger(there.db), queue, worker())
  // That of the run that it gives up, too.
  expect(attempts).toEqual(['lost', 'lost'])
  expect(ends).toEqual([{ kind: 'ldap', mode: 'plan', outcome: 'failed', reason: 'unavailable' }])
})

test.each([
  [{ code: '55P03' }, 'lock_timeout'],
  [{ code: '57014' }, 'statement_timeout'],
  [{ code: '40001' }, 'collision'],
  [{ code: '40P01' }, 'collision'],
  [{ code: '25006' }, 'no_writes'],
  [{ code: '53100' }, 'no_writes'],
  [{ code: '53300' }, 'connection'],
  [{ code: '57P01' }, 'connection'],
  [{ code: 'ECONNRESET', syscall: 'read' }, 'connection'],
  [{ code: 'XX002' }, 'other'],
  [{}, 'other'],
])('%j is of the class %s', (facts, expected) => {
  expect(causeClass(Object.assign(new Error('it failed'), facts))).toBe(expected)
})

test.each(['plan', 'apply'] as const)('the %s of a document that is refused counts as refused', async (mode) => {
  const { pk } = await there.db.group.create({ data: { pk: uuid7(), name: `tally ${mode}` } })
  const { id } = await there.recorded(await named('scim', `tally-${mode}`, { provider: { filter_group: pk } }), {
    mode,
  })
  await there.db.group.delete({ where: { pk } })
  await work(worker(), id)
  expect(ends).toEqual([{ kind: 'scim', mode, outcome: 'refused', reason: 'invalid', ...times }])
})

test('a plan counts as planned, and a repeated apply as unchanged', async () => {
  const body = await named('radius', 'tally-again')
  for (const mode of ['plan', 'apply', 'apply'] as const)
    await work(worker(), (await there.recorded(body, { mode })).id)
  expect(ends.map(({ outcome }) => outcome)).toEqual(['planned', 'applied', 'unchanged'])
})
