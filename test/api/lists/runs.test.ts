import { beforeAll, describe, expect, test } from 'vitest'
import type { Prisma } from '../../../src/db/generated/client.ts'
import { sealedColumn } from '../../../src/runs/ledger.ts'
import { runSummary } from '../../../src/views/run.ts'
import { type Installation, installation } from '../../support/installation.ts'
import type { Made } from '../../support/make.ts'
import { rows, sql } from '../../support/sql.ts'
import { column, type Listed, read, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/blueprints/runs/ */

let on: Installation
let ada: Made
const runs: Listed = { path: '/api/v3/blueprints/runs/', by: () => on.admin, view: runSummary, key: 'id' }
const own: Listed = { ...runs, by: () => ada }

const key = (number: number) => `01a1fd66-0000-7000-8000-00000000000${number}`
const minute = (number: number) => new Date(Date.UTC(2026, 10, 1, 12, number))

beforeAll(async () => {
  on = await installation({ workers: 'none' })
  ada = await on.make.user()
  const row = (number: number, submitterPk: number | null, more: Partial<Prisma.RunUncheckedCreateInput>) =>
    on.db.run.create({
      data: {
        ...{
          id: key(number),
          title: `apply oauth2 wiki-${number}`,
          kind: 'oauth2',
          slug: `wiki-${number}`,
          submitterPk,
        },
        ...{ requestId: `request ${number}`, createdAt: minute(number), state: 'done', applied: true },
        finishedAt: minute(number),
        blueprint: on.engine.keyring.seal('version: 1\nentries: []\n', sealedColumn(key(number), 'blueprint')),
        ...more,
      },
    })
  await row(1, ada.pk, {
    startedAt: new Date(minute(1).getTime() + 40),
    finishedAt: new Date(minute(1).getTime() + 65),
  })
  await row(2, ada.pk, { state: 'queued', applied: null, finishedAt: null, attempts: 2 })
  await row(3, 1, { state: 'cancelled', applied: null, reason: 'cancelled', logs: ['No worker took it.'] })
  await row(4, 1, {
    applied: false,
    reason: 'taken',
    kind: 'blueprint',
    slug: null,
    title: 'apply blueprint Büro 100%',
  })
  await row(5, null, { state: 'failed', applied: null })
})

const numbered = async (parameters: Parameters<typeof read>[1], list = runs) =>
  (await column(list, 'id', parameters)).map((id) => Number(String(id).at(-1)))

describe('a run', () => {
  test('is shown with every field, but without its document', async () => {
    const [run] = (await read(runs, { request_id: 'request 1' })).results
    expect(run).toEqual({
      ...{
        id: key(1),
        state: 'done',
        title: 'apply oauth2 wiki-1',
        mode: 'apply',
        kind: 'oauth2',
        slug: 'wiki-1',
        applied: true,
      },
      ...{ cause: null, repaired: false, repaired_by: null },
      ...{ reason: null, logs: [], submitter: ada.pk, submitter_name: ada.username, request_id: 'request 1' },
      ...{ attempts: 1, created_at: '2026-11-01T12:01:00.000Z', started_at: '2026-11-01T12:01:00.040Z' },
      ...{ finished_at: '2026-11-01T12:01:00.065Z', queue_ms: 40, work_ms: 25 },
    })
  })

  test('that no worker began, of a deleted user, has null in the unknown fields', async () => {
    expect((await read(runs, { state: 'failed' })).results).toMatchObject([
      { submitter: null, submitter_name: null, started_at: null, queue_ms: null, work_ms: null },
    ])
    expect((await read(runs, { state: 'queued' })).results).toMatchObject([{ applied: null, finished_at: null }])
    expect((await read(runs, { kind: 'blueprint' })).results).toMatchObject([{ slug: null, reason: 'taken' }])
  })

  test('that a worker has locked is running, and still found as queued', async () => {
    const states = () => column(runs, 'state', { state: 'queued' })
    expect(await states()).toEqual(['queued'])
    await on.db.$transaction(async (tx) => {
      await rows(tx, sql`SELECT id FROM runs WHERE id = ${key(2)}::uuid FOR UPDATE`)
      expect(await states()).toEqual(['running'])
    })
    expect(await states()).toEqual(['queued'])
  })
})

describe('whose runs are listed', () => {
  test('the caller’s own, without the permission', async () => {
    expect(await numbered({}, own)).toEqual([2, 1])
    expect((await read(own)).pagination.count).toBe(2)
    expect(await numbered({ submitter: 1 }, own)).toEqual([])
    expect(await numbered({ search: 'büro' }, own)).toEqual([])
  })

  test('all, with view_run', async () => {
    const auditor = await on.make.user({ permissions: ['view_run'] })
    expect(await numbered({}, { ...runs, by: () => auditor })).toEqual([5, 4, 3, 2, 1])
  })
})

describe('is narrowed by', () => {
  test.each<[Parameters<typeof read>[1], number[]]>([
    [{}, [5, 4, 3, 2, 1]],
    [{ state: ['queued', 'failed'] }, [5, 2]],
    [{ reason: 'taken' }, [4]],
    [{ kind: 'oauth2', state: 'done' }, [1]],
    [{ slug: 'wiki-3' }, [3]],
    [{ submitter: 1 }, [4, 3]],
    [{ request_id: 'request 5' }, [5]],
    [{ created_after: '2026-11-01T12:03:00Z' }, [5, 4, 3]],
    [{ created_before: '2026-11-01T12:03:00Z' }, [2, 1]],
    [{ created_after: '2026-11-01T14:02:00+02:00', created_before: '2026-11-01T12:03:00.001Z' }, [3, 2]],
    [{ search: 'WIKI' }, [5, 3, 2, 1]],
    [{ search: '100%' }, [4]],
  ])('%j', async (parameters, expected) => {
    expect(await numbered(parameters)).toEqual(expected)
    expect((await read(runs, parameters)).pagination.count).toBe(expected.length)
  })
})

const noTime = ['Must be a date-time such as 2026-11-20T08:15:00Z.']

testRefusals(runs, {
  'a state that is not stored': [
    '?state=running',
    { state: { 0: ['Must be one of: queued, done, failed, cancelled.'] } },
  ],
  'a day for a time': ['?created_after=2026-11-01', { created_after: noTime }],
  'a time without a zone': ['?created_before=2026-11-01T12:00:00', { created_before: noTime }],
  'the year 0': [
    '?created_after=0000-01-01T00:00:00Z',
    { created_after: ['Must be between the years 1 and 9999, in UTC.'] },
  ],
})

testPages(runs, ['created_at', 'title', 'state', 'id'], [{ kind: 'oauth2' }, { search: 'wiki' }])
testStatements(runs, 5, [{ state: 'queued' }])
