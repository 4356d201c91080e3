import { beforeAll, describe, expect, test } from 'vitest'
import { lockKey } from '../../../src/blueprint/perform.ts'
import { runChannel } from '../../../src/blueprint/run/record.ts'
import { sql } from '../../../src/db/sql.ts'
import { uuid7 } from '../../../src/ids.ts'
import { named } from '../../support/installation.ts'
import { listen } from '../../support/listen.ts'
import { within } from '../../support/template.ts'
import { until } from '../../support/until.ts'
import { held, type Stand, stand } from './stand.ts'

let there: Stand
beforeAll(async () => {
  there = await stand()
})

const providers = (name: string) => there.db.prisma.provider.count({ where: { name } })
const audits = (runId: string) => there.db.prisma.auditRow.count({ where: { runId } })

test('effect, result and audit are there together', async () => {
  const { id, name } = await there.recorded()
  expect(await there.work(id)).toBe('applied')
  const run = await there.run(id)
  expect(run).toMatchObject({
    state: 'done',
    applied: true,
    reason: null,
    logs: [expect.stringContaining('created'), expect.stringContaining('created')],
  })
  expect(run.startedAt?.getTime()).toBeLessThanOrEqual(run.finishedAt?.getTime() ?? 0)
  expect([await providers(name), await audits(id)]).toEqual([1, 1])
})

describe('duplicates are harmless', () => {
  test('rung again, a finished run is left as it is', async () => {
    const { id } = await there.recorded()
    await there.work(id)
    const before = await there.run(id)
    expect(await there.work(id)).toBe('duplicate')
    expect(await there.run(id)).toEqual(before)
    expect(await audits(id)).toBe(1)
  })

  test('rung again, a finished run is announced again: who finished it may have died before he told anybody', async () => {
    const { id } = await there.recorded()
    await there.work(id)
    const heard = await listen(there.url, runChannel)
    expect(await there.work(id)).toBe('duplicate')
    await until(() => heard.includes(id), { what: 'the announcement' })
  })

  test('of 8 workers that are rung at once, one applies', async () => {
    const { id, name } = await there.recorded()
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => there.work(id)))
    expect(outcomes.sort()).toEqual(['applied', ...Array.from({ length: 7 }, () => 'duplicate')])
    expect([await providers(name), await audits(id)]).toEqual([1, 1])
  })

  test('a run that is not there is gone', async () => {
    expect(await there.work('6f7e0000-0000-7000-8000-000000000000')).toBe('gone')
  })

  test('a cancelled run is not applied any more', async () => {
    const { id, name } = await there.recorded()
    await there.db.prisma.run.update({ where: { id }, data: { state: 'cancelled', finishedAt: new Date() } })
    expect(await there.work(id)).toBe('duplicate')
    expect(await providers(name)).toBe(0)
  })
})

describe('refused is not broken', () => {
  test('what only the transaction shows completes the run, with its reason', async () => {
    const { pk } = await there.db.prisma.group.create({
      data: { pk: '6f7e0000-0000-4000-8000-00000000eeee', name: 'short-lived' },
    })
    const { id, name } = await there.recorded(await named('scim', 'refused', { provider: { filter_group: pk } }))
    await there.db.prisma.group.delete({ where: { pk } })
    expect(await there.work(id)).toBe('refused')
    expect(await there.run(id)).toMatchObject({
      state: 'done',
      applied: false,
      reason: 'invalid',
      logs: [expect.stringMatching(/^rolled back: .*There is no group with the key/)],
    })
    expect([await providers(name), await audits(id)]).toEqual([0, 0])
  })

  test('all that others took away or took for themselves since the check is told, in the words of the check', async () => {
    const flow = await there.db.prisma.flow.create({
      data: { pk: uuid7(), name: 'short-lived', slug: 'short-lived', title: 'Gone', designation: 'authorization' },
    })
    const changed = { provider: { authorization_flow: flow.pk, client_id: 'contested' } }
    const { id, name } = await there.recorded(await named('oauth2', 'too-late', changed))
    const winner = await there.recorded(await named('oauth2', 'in-time', { provider: { client_id: 'contested' } }))
    expect(await there.work(winner.id)).toBe('applied')
    await there.db.prisma.flow.delete({ where: { pk: flow.pk } })
    expect(await there.work(id)).toBe('refused')
    expect((await there.run(id)).logs.toSorted()).toEqual([
      `rolled back: provider.authorization_flow: There is no flow with the key ${flow.pk}.`,
      `rolled back: provider.client_id: "contested" is taken by provider oauth2 ${JSON.stringify(winner.name)}.`,
    ])
    expect([await providers(name), await audits(id)]).toEqual([0, 0])
  })

  test('a surprise fails the job and the run, without saying what is nobody else to know', async () => {
    const { id, name } = await there.recorded()
    await there.db.prisma.run.update({ where: { id }, data: { blueprint: 'v1.not.sealed.here' } })
    await expect(there.work(id)).rejects.toThrow()
    expect(await there.run(id)).toMatchObject({
      state: 'failed',
      applied: false,
      reason: 'server_error',
      logs: [
        `rolled back: an error inside the service; nothing was changed. The service's log has the details of run ${id}.`,
      ],
    })
    expect([await providers(name), await audits(id)]).toEqual([0, 0])
    expect(there.log.some((line) => line.includes(id) && line.includes('a run failed by surprise'))).toBe(true)
  })
})

describe('what passes is waited for, or tried again', () => {
  test('a row that somebody else has locked', async () => {
    const { id } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    await until(async () => (await waiting()) > 0, { what: 'the worker to wait' })
    expect((await there.run(id)).state).toBe('queued')
    await release()
    expect(await working).toBe('applied')
  })

  test('a row that somebody else has locked, and by then its submitter is no longer active', async () => {
    const { id, name } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    await until(async () => (await waiting()) > 0, { what: 'the worker to wait' })
    const setActive = (isActive: boolean) =>
      there.db.prisma.user.update({ where: { pk: there.adminPk }, data: { isActive } })
    await setActive(false)
    try {
      await release()
      expect(await working).toBe('refused')
    } finally {
      await setActive(true)
    }
    expect(await there.run(id)).toMatchObject({ applied: false, reason: 'permission_denied' })
    expect(await providers(name)).toBe(0)
  })

  test('a slug that somebody else is writing', async () => {
    const { id, name } = await there.recorded()
    const key = lockKey('applications', [name])
    const release = await held(there, (tx) => tx.query(sql`SELECT pg_advisory_xact_lock(${key}::bigint)`))
    const working = there.work(id)
    await until(async () => (await waiting()) > 0, { what: 'the worker to wait' })
    await release()
    expect(await working).toBe('applied')
  })

  test('a connection that is lost in the middle', async () => {
    const { id, name } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    await until(async () => (await waiting()) > 0, { what: 'the worker to wait' })
    const killed = await within(there.url, (client) =>
      client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      ),
    )
    expect(killed.rowCount).toBe(1)
    await release()
    expect(await working).toBe('applied')
    expect([await providers(name), await audits(id)]).toEqual([1, 1])
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

test('made-up values are sealed with the run, for as long as they may be read', async () => {
  const { id } = await there.recorded(
    await named('oauth2', 'generated', { provider: { client_id: undefined, client_secret: undefined } }),
  )
  await there.work(id)
  const run = await there.run(id)
  expect(run.generated).toMatch(/^v1\./)
  const opened = JSON.parse(
    there.engine.keyring.open(run.generated ?? '', { table: 'runs', row: id, column: 'generated' }),
  )
  expect(Object.keys(opened.provider)).toEqual(['client_id', 'client_secret'])
  expect(((run.generatedUntil?.getTime() ?? 0) - Date.now()) / 3_600_000).toBeCloseTo(24, 1)
})
