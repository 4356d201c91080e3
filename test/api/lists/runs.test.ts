import { afterAll, describe, expect, test } from 'vitest'
import type { Prisma } from '../../../src/db/generated/client.ts'
import { uuid7 } from '../../../src/ids.ts'
import { sealedColumn } from '../../../src/runs/ledger.ts'
import { runSummary } from '../../../src/views/run.ts'
import { installation, rows, sql } from '../../support/kit.ts'
import { column, type Listed, read, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/blueprints/runs/ */

const runs: Listed = {
  path: '/api/v3/blueprints/runs/',
  by: () => on.admin,
  view: runSummary,
  key: 'id',
  isCapped: true,
}
const own: Listed = { ...runs, by: () => ada }

const key = (number: number) => `01a1fd66-0000-7000-8000-00000000000${number}`
const minute = (number: number) => new Date(Date.UTC(2026, 10, 1, 12, number))

const on = await installation({ workers: 'none' })
const ada = await on.make.user()
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
      ...{
        reason: null,
        summary: 'applied',
        logs: [],
        log_lines: 0,
        pipeline: null,
        submitter: ada.pk,
        submitter_name: ada.username,
        request_id: 'request 1',
      },
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

describe('what a run did stands in one sentence, beside the first 20 lines of its log:', () => {
  const entry = (action: string, name: string) => ({ model: 'service_core.group', key: { name }, action, fields: {} })
  const many = Array.from({ length: 25 }, (_, number) => `line ${number + 1}`)
  const options = { createOnly: false, expectedKeys: {}, owner: 'team-extracts' }

  afterAll(() => on.db.run.deleteMany({ where: { title: 'apply of extracts' } }))

  async function made(data: Partial<Prisma.RunUncheckedCreateInput>): Promise<string> {
    const id = uuid7()
    await on.db.run.create({
      data: {
        ...{ id, title: 'apply of extracts', requestId: id, submitterPk: 1, options, state: 'done' },
        finishedAt: data.state === 'queued' ? null : new Date(),
        ...data,
      },
    })
    return id
  }
  const listed = async (id: string, by = on.admin) => (await read({ ...runs, by: () => by }, { id })).results[0]

  test.each<[string, Partial<Prisma.RunUncheckedCreateInput>, object]>([
    [
      'an applied run counts its entries',
      {
        applied: true,
        logs: many,
        changes: [
          ...['a', 'b', 'c'].map((name) => entry('unchanged', name)),
          ...[entry('create', 'd'), entry('delete', 'e'), entry('create', 'f'), entry('update', 'g')],
        ],
      },
      { summary: '1 deleted, 1 changed, 2 created, 3 unchanged', logs: many.slice(0, 20), log_lines: 25 },
    ],
    [
      'a plan says what it would do',
      { mode: 'plan', applied: false, logs: many.slice(0, 20), changes: [entry('update', 'a')] },
      { summary: 'planned: 1 changed', logs: many.slice(0, 20), log_lines: 20 },
    ],
    [
      'a plan of nothing',
      { mode: 'plan', applied: false },
      { summary: 'planned: nothing would change', logs: [], log_lines: 0 },
    ],
    [
      'a refused plan says why',
      { mode: 'plan', applied: false, reason: 'invalid', logs: ['name: too long'] },
      { summary: 'name: too long', log_lines: 1 },
    ],
    [
      'a refused run says why, in at most 300 characters',
      { applied: false, reason: 'taken', logs: ['x'.repeat(400), 'and more'] },
      { summary: 'x'.repeat(300), logs: ['x'.repeat(400), 'and more'], log_lines: 2 },
    ],
    ['a refusal without a log has its reason', { applied: false, reason: 'taken' }, { summary: 'taken' }],
    ['a failure without a log has its state', { state: 'failed' }, { summary: 'failed' }],
    ['a run of an earlier version has no counts', { applied: true, logs: many }, { summary: 'applied' }],
    [
      'what cannot be read is not counted',
      { applied: true, changes: [entry('create', 'a'), entry('explode', 'b'), 7] },
      { summary: '1 created' },
    ],
    ['no list of changes counts nothing', { applied: true, changes: { a: 1 } }, { summary: 'applied' }],
    [
      'a queued run',
      { state: 'queued' },
      { summary: 'not applied yet: no worker has ever taken a job: start one', logs: [], log_lines: 0 },
    ],
  ])('%s', async (_, data, expected) => {
    const id = await made(data)
    expect(await listed(id)).toMatchObject(expected)
    const { json } = await on.admin.get(`${runs.path}${id}/`)
    expect(json).toMatchObject({ logs: data.logs ?? [] })
  })

  test('a caller bound to owners reads no more of it than of the run itself', async () => {
    const permissions = ['view_run', 'view_application'] as const
    const bound = await on.make.user({ permissions: [...permissions], owners: ['team-extracts'] })
    const refused = await made({ applied: false, reason: 'conflict', logs: many })
    const fields = { owner: { from: 'team-before', to: 'team-extracts' } }
    const taken = await made({ applied: true, logs: many, changes: [{ ...entry('update', 'a'), fields }] })
    const { json } = await bound.get(`${runs.path}${refused}/`)
    const { logs } = json as { logs: string[] }
    expect(logs).toHaveLength(1)
    expect(await listed(refused, bound)).toMatchObject({ summary: logs[0], logs, log_lines: 1 })
    expect(await listed(taken, bound)).toMatchObject({ summary: '1 changed', logs, log_lines: 1 })
    expect(await listed(refused)).toMatchObject({ summary: 'line 1', log_lines: 25 })
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
])('is narrowed by %j', async (parameters, expected) => {
  expect(await numbered(parameters)).toEqual(expected)
  expect((await read(runs, parameters)).pagination.count).toBe(expected.length)
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
// Why they wait takes the state of the installation, which is read at most twice meanwhile.
testStatements(runs, 14, [{ state: 'queued' }])
