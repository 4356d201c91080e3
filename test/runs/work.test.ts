import { describe, expect, test } from 'vitest'
import { CommitUnknown, transaction } from '../../src/db/client.ts'
import { nameLock, pairLocks } from '../../src/db/locks.ts'
import { uuid7 } from '../../src/ids.ts'
import { notifiedRun, readRuns, runChannel } from '../../src/runs/ended.ts'
import { NotYet } from '../../src/runs/life.ts'
import { work } from '../../src/runs/work.ts'
import type { WorkerLedger } from '../../src/runs/worker-ledger.ts'
import { execute, named, objects, sql, until, within } from '../support/kit.ts'
import { listen } from '../support/listen.ts'
import { held, stand } from './stand.ts'

const there = await stand()

const providers = (name: string) => there.db.provider.count({ where: { name } })
const applied = {
  state: 'done',
  applied: true,
  reason: null,
  logs: expect.arrayContaining([expect.stringContaining('created')]),
}
const refused = {
  state: 'done',
  applied: false,
  reason: expect.stringMatching(/^(invalid|permission_denied)$/),
  logs: expect.arrayContaining([expect.stringMatching(/^rolled back[:,] /)]),
}
const audits = (runId: string) => there.db.auditRow.count({ where: { runId } })

test('effect, result and audit row are committed together', async () => {
  const { id, name } = await there.recorded()
  const ended = await there.work(id)
  const run = await there.run(id)
  expect(ended).toEqual({ state: 'done', applied: true, reason: null, logs: run.logs })
  expect(run).toMatchObject({
    state: 'done',
    applied: true,
    reason: null,
    logs: [expect.stringContaining('created'), expect.stringContaining('created')],
  })
  expect(run.startedAt?.getTime()).toBeLessThanOrEqual(run.finishedAt?.getTime() ?? 0)
  expect([await providers(name), await audits(id)]).toEqual([1, 1])
})

test('a plan reports what would happen and leaves nothing behind', async () => {
  const body = await named('oauth2', 'planned', { provider: { client_secret: undefined } })
  const { id } = await there.recorded(body, { mode: 'plan' })
  const before = await objects(there.db)
  const ended = await there.work(id)
  expect(await objects(there.db)).toEqual(before)
  expect(ended).toEqual({
    ...{ state: 'done', applied: false, reason: null },
    logs: ['provider oauth2 "planned" would be created', 'application "planned" would be created'],
  })
  const run = await there.run(id)
  expect(run).toMatchObject({ mode: 'plan', applied: false, generated: null, planTag: expect.any(String) })
  expect(run.changes).toMatchObject([{ action: 'create' }, { action: 'create' }])
  expect(run.entryDigests).toHaveLength(2)
})

describe('duplicates are harmless', () => {
  test('a second job leaves a finished run as it is, and reports its result', async () => {
    const { id } = await there.recorded()
    const ended = await there.work(id)
    const before = await there.run(id)
    expect(await there.work(id)).toEqual(ended)
    expect(await there.run(id)).toEqual(before)
    expect(await audits(id)).toBe(1)
  })

  test('a second job notifies of a finished run again: its worker may have died before it could', async () => {
    const { id } = await there.recorded()
    await there.work(id)
    const heard = await listen(there.url, runChannel)
    expect(await there.work(id)).toEqual(applied)
    await until('the notification', () => heard.length > 0)
    expect(heard.map(notifiedRun)).toEqual(await readRuns(there.db, [id]))
  })

  test('of 8 jobs at once, one applies, and all report it', async () => {
    const { id, name } = await there.recorded()
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => there.work(id)))
    expect(outcomes).toEqual(Array(8).fill(applied))
    expect([await providers(name), await audits(id)]).toEqual([1, 1])
  })

  test('a missing run has no result', async () => {
    expect(await there.work('6f7e0000-0000-7000-8000-000000000000')).toBeUndefined()
  })

  test('a cancelled run is not applied any more', async () => {
    const { id, name } = await there.recorded()
    await there.db.run.update({ where: { id }, data: { state: 'cancelled', finishedAt: new Date() } })
    expect(await there.work(id)).toMatchObject({ state: 'cancelled', applied: false })
    expect(await providers(name)).toBe(0)
  })
})

describe('a refusal is not a failure', () => {
  test('what only the transaction shows completes the run, with its reason', async () => {
    const { pk } = await there.db.group.create({
      data: { pk: '6f7e0000-0000-4000-8000-00000000eeee', name: 'short-lived' },
    })
    const { id, name } = await there.recorded(await named('scim', 'refused', { provider: { filter_group: pk } }))
    await there.db.group.delete({ where: { pk } })
    expect(await there.work(id)).toEqual(refused)
    expect(await there.run(id)).toMatchObject({
      state: 'done',
      applied: false,
      reason: 'invalid',
      logs: [expect.stringMatching(/^rolled back: .*There is no group with the key/)],
    })
    expect([await providers(name), await audits(id)]).toEqual([0, 0])
  })

  test('everything that others deleted or took since the check is reported, with the messages of the check', async () => {
    const flow = await there.db.flow.create({
      data: { pk: uuid7(), name: 'short-lived', slug: 'short-lived', title: 'Gone', designation: 'authorization' },
    })
    const changed = { provider: { authorization_flow: flow.pk, client_id: 'contested' } }
    const { id, name } = await there.recorded(await named('oauth2', 'too-late', changed))
    const winner = await there.recorded(await named('oauth2', 'in-time', { provider: { client_id: 'contested' } }))
    expect(await there.work(winner.id)).toEqual(applied)
    await there.db.flow.delete({ where: { pk: flow.pk } })
    expect(await there.work(id)).toEqual(refused)
    const [first, ...reasons] = (await there.run(id)).logs
    expect(first).toBe('rolled back, for these reasons:')
    expect(reasons.toSorted()).toEqual([
      `provider.authorization_flow: There is no flow with the key ${flow.pk}.`,
      `provider.client_id: "contested" is taken by provider oauth2 ${JSON.stringify(winner.name)}.`,
    ])
    expect([await providers(name), await audits(id)]).toEqual([0, 0])
  })

  test('a bug fails the run, and the reason stays in the log of the service', async () => {
    const { id, name } = await there.recorded()
    await there.db.run.update({ where: { id }, data: { blueprint: 'v1.not.sealed.here' } })
    expect(await there.work(id)).toMatchObject({ state: 'failed', applied: false, reason: 'server_error' })
    expect(await there.run(id)).toMatchObject({
      state: 'failed',
      applied: false,
      reason: 'server_error',
      logs: [
        `rolled back: an error inside the service; nothing was changed. The service's log has the details of run ${id}.`,
      ],
    })
    expect([await providers(name), await audits(id)]).toEqual([0, 0])
    const lines = there.log.map((line) => JSON.parse(line)).filter(({ run }) => run === id)
    expect(lines).toMatchObject([
      {
        level: 50,
        code: 'server_error',
        err: { stack: expect.any(String) },
        msg: expect.stringContaining('run ended'),
      },
    ])
  })
})

test.each([
  ['{"allow": 5}', 'allow'],
  ['{"owner": [], "stack": 1}', 'stack, owner'],
  ['{"ceiling": "view_run"}', 'ceiling'],
  ['[]', 'options'],
  ['null', 'options'],
])('a run whose stored options cannot be read fails at its first attempt: %s', async (options, fields) => {
  const { id, name } = await there.recorded()
  await transaction(there.db, (tx) => execute(tx, sql`UPDATE runs SET options = ${options}::jsonb WHERE id = ${id}`))
  const logs = [
    `rolled back: the stored options of the run cannot be read (${fields}): submit its document again; nothing was changed. The service's log has the details of run ${id}.`,
  ]
  expect(await there.work(id)).toEqual({ state: 'failed', applied: false, reason: 'server_error', logs })
  expect(await there.run(id)).toMatchObject({
    state: 'failed',
    attempts: 1,
    logs,
    cause: expect.stringContaining(fields),
  })
  expect([await providers(name), await audits(id)]).toEqual([0, 0])
})

describe('a lock is waited for, and a lost connection is tried again', () => {
  test('a row that another transaction has locked', async () => {
    const { id } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    await until('the worker to wait', async () => (await waiting()) > 0)
    expect((await there.run(id)).state).toBe('queued')
    await release()
    expect(await working).toEqual(applied)
  })

  test('a row that another transaction has locked, and by then the submitter is no longer active', async () => {
    const { id, name } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    await until('the worker to wait', async () => (await waiting()) > 0)
    const setActive = (isActive: boolean) => there.db.user.update({ where: { pk: there.adminPk }, data: { isActive } })
    await setActive(false)
    try {
      await release()
      expect(await working).toEqual(refused)
    } finally {
      await setActive(true)
    }
    expect(await there.run(id)).toMatchObject({ applied: false, reason: 'permission_denied' })
    expect(await providers(name)).toBe(0)
  })

  test('a slug that another transaction is writing', async () => {
    const { id, name } = await there.recorded()
    const key = nameLock('applications', [name])
    const release = await held(there, (tx) => execute(tx, sql`SELECT pg_advisory_xact_lock(${key}::bigint)`))
    const working = there.work(id)
    await until('the worker to wait', async () => (await waiting()) > 0)
    await release()
    expect(await working).toEqual(applied)
  })

  test('a connection that is lost in the middle', async () => {
    const { id, name } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    await until('the worker to wait', async () => (await waiting()) > 0)
    const killed = await within(there.url, (client) =>
      client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      ),
    )
    expect(killed.rowCount).toBe(1)
    await release()
    expect(await working).toEqual(applied)
    expect([await providers(name), await audits(id)]).toEqual([1, 1])
  })

  test('a commit of unknown outcome that did not happen', async () => {
    const { id, name } = await there.recorded()
    const { ledger } = there.worker
    let isLost = false
    const losing: WorkerLedger = {
      ...ledger,
      transaction: (of, inside) =>
        ledger.transaction(of, async (tx) => {
          const result = await inside(tx)
          if (isLost) return result
          isLost = true
          throw new CommitUnknown('the connection was lost')
        }),
    }
    expect(await work({ ...there.worker, ledger: losing }, id)).toEqual(applied)
    expect([isLost, await providers(name), await audits(id)]).toEqual([true, 1, 1])
  })

  /** Sessions of this database that wait for a lock. */
  async function waiting(): Promise<number> {
    const { rows } = await within(there.url, (client) =>
      client.query<{ count: string }>(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      ),
    )
    return Number(rows[0]?.count)
  }
})

test('generated values are sealed with the run, for as long as they may be read', async () => {
  const { id } = await there.recorded(
    await named('oauth2', 'generated', { provider: { client_id: undefined, client_secret: undefined } }),
  )
  await there.work(id)
  const run = await there.run(id)
  expect(run.generated).toMatch(/^v2\./)
  const opened = JSON.parse(
    there.engine.keyring.open(run.generated ?? '', { table: 'runs', row: id, column: 'generated' }),
  )
  expect(Object.keys(opened.provider)).toEqual(['client_id', 'client_secret'])
  expect(((run.generatedUntil?.getTime() ?? 0) - Date.now()) / 3_600_000).toBeCloseTo(24, 1)
})

describe('a run that gives its slot back', () => {
  const isLeft = async (id: string) => {
    await expect(there.work(id)).rejects.toThrow(NotYet)
    const { state, attempts, enqueuedAt } = await there.run(id)
    expect({ state, attempts, isLater: +enqueuedAt > Date.now() }).toEqual({
      state: 'queued',
      attempts: 1,
      isLater: true,
    })
  }
  const pair = (kind: keyof typeof pairLocks, of: number) =>
    held(there, (tx) =>
      execute(tx, sql`SELECT pg_advisory_xact_lock(${pairLocks[kind]}::integer, ${of}::integer)::text`),
    )
  const recordedSet = async () => {
    const { id } = await there.recorded()
    await execute(
      there.db,
      sql`UPDATE runs SET options = options || '{"lane": 4, "entries": 101}' WHERE id = ${id}::uuid`,
    )
    return id
  }

  test('is a set while an older one of its submitter waits or is at work, and what was sent behind it', async () => {
    const [first, second] = [await recordedSet(), await recordedSet()]
    const { id: later } = await there.recorded()
    await execute(there.db, sql`UPDATE runs SET options = options || '{"lane": 4}' WHERE id = ${later}::uuid`)
    for (const id of [second, later]) await isLeft(id)
    const end = await pair('sets', there.adminPk)
    await isLeft(first)
    await end()
    for (const id of [first, second, later]) expect(await there.work(id)).toEqual(applied)
  })

  test('is a set while sets have all the slots that they may have', async () => {
    const { id: small } = await there.recorded()
    const id = await recordedSet()
    const end = await pair('slotsOfSets', 1)
    await isLeft(id)
    expect(await there.work(small)).toEqual(applied)
    await end()
    expect(await there.work(id)).toEqual(applied)
  })

  test('is one that was not given a lock', async () => {
    const { id, name } = await there.recorded()
    const lock = nameLock('providers', [name])
    const end = await held(there, (tx) => execute(tx, sql`SELECT pg_advisory_xact_lock(${lock}::bigint)::text`))
    const waits = await pair('waits', there.adminPk)
    await isLeft(id)
    await Promise.all([end(), waits()])
    expect(await there.work(id)).toEqual(applied)
  })
})
