import { describe, expect, test } from 'vitest'
import type { Now } from '../../src/dashboard/now/read.ts'
import { evaluate, parts, summary } from '../../src/dashboard/now/summary.ts'
import type { RunGroup } from '../../src/dashboard/runs/tables.ts'
import type { KnownProcess } from '../../src/db/presence.ts'
import { type Right, system } from '../../src/permissions.ts'

/** What the first page says of what was read. */

const at = new Date('2026-11-23T12:00:00Z')
const healthy = { ok: true, detail: 'It answers.' }
const broken = { ok: false, detail: 'It does not answer.' }
const checks = {
  ...{ database: healthy, migrations: healthy, secrets: healthy, versions: healthy },
  ...{ changes: healthy, queue: healthy, pause: healthy, worker: healthy },
}

const nothing: Now = {
  ...{ at, checks, pause: 'none', workers: [], servers: [], atWork: [], teams: [] },
  ...{
    backlog: { waiting: 0, postponed: 0, oldestS: null },
    figures: {} as Now['figures'],
    newest: [],
    refused: { rows: [], keptFrom: null, isFlood: false },
  },
  ...{ failures: { groups: [], isAll: true }, tokens: [], certificates: [] },
}

const process = (seenS: number): KnownProcess => ({
  ...{ id: `id-${seenS}`, host: `host-${seenS}.example`, processId: 7, version: '0.3.0', format: 3 },
  ...{ slots: 8, busy: 0, startedAt: at, takenAt: null, seenS },
})
const failed = (runs: number, open: number | null) => {
  const group: RunGroup = {
    ...{ outcome: 'failed', cause: 'x', runs, open, last: { id: 'x', createdAt: at }, submitters: [], owners: [] },
  }
  return { groups: [group], isAll: true }
}
const expiring = (hours: number) => [{ name: 'x', user: null, expires: new Date(at.getTime() + hours * 3_600_000) }]
const pause = { by: { name: 'alice', since: at, reason: null } }
const noWorker = { ...checks, worker: broken }
const paused = { ...noWorker, pause: { ok: false, detail: 'The queue is paused, by alice.' } }

const sentences: readonly (readonly [string, Partial<Now>, string])[] = [
  ['one part', { checks: { ...checks, secrets: broken } }, 'Nothing is applied: it does not answer.'],
  ['a pause', { pause, checks: paused }, 'Queue paused by alice 2026-11-23 12:00.'],
  [
    'the part that the others need',
    { pause, checks: { ...paused, database: { ok: false, detail: 'PostgreSQL does not answer.' } } },
    'Nothing is applied: PostgreSQL does not answer.',
  ],
  [
    'a part whose sentence is a question',
    { checks: { ...checks, queue: { ok: false, detail: 'The queue does not answer: is REDIS_URL right?' } } },
    'Nothing is applied: the queue does not answer: is REDIS_URL right?',
  ],
  ['a stopped worker', { checks: noWorker }, 'Nothing is applied: it does not answer.'],
  ['silent workers', { workers: [process(1), process(60), process(90)] }, '2 workers silent'],
  ['a silent server', { servers: [process(1), process(60)] }, '1 server silent'],
  ['failures', { failures: failed(3, 2) }, '2 runs not applied and not repaired'],
  ['failures of which no more is known', { failures: failed(3, null) }, '3 runs failed within 7 days'],
  ['an expired token', { tokens: expiring(-1) }, '1 token expired'],
  ['a token of today', { tokens: expiring(23) }, '1 token about to expire'],
  ['an expired certificate', { certificates: expiring(0) }, '1 certificate expired'],
  ['parts that were not read', { failures: null, workers: null, atWork: null }, '3 parts could not be read'],
  [
    'teams',
    {
      teams: [
        { owner: 'a', applied: 1, failing: 2, waiting: 0, changed_outside: 0, last: undefined },
        { owner: null, applied: 0, failing: 0, waiting: 1, changed_outside: 1, last: undefined },
      ],
    },
    '2 applications failing | 1 application changed outside',
  ],
  ['a pause that was not read', { pause: null }, '1 part could not be read'],
]

const saidOf = (found: Partial<Now>, isAllSeen = true) =>
  evaluate({ ...nothing, ...found }, isAllSeen)
    .map(([, text]) => String(text).replaceAll(/<[^>]+>/g, ''))
    .join(' | ')

describe('the summary of the first page', () => {
  test.each(sentences)('names %s', (_what, found, text) => {
    for (const isAllSeen of [true, false]) expect(saidOf(found, isAllSeen)).toBe(text)
  })

  test('says that nothing is wrong only of what is known', () => {
    expect(saidOf({})).toBe('Nothing is wrong.')
    expect(saidOf({ failures: failed(3, 0), tokens: expiring(25), certificates: expiring(300) })).toBe(
      'Nothing is wrong.',
    )
    for (const text of [saidOf({}, false), saidOf({ failures: { groups: [], isAll: false } })])
      expect(text).toBe('Nothing is known to be wrong.')
  })

  test('knows who may see everything', () => {
    const all = ['view_run', 'view_token', 'view_certificatekeypair'] as const
    const said = (permissions: readonly Right[], isSuperuser = false) =>
      String(summary(nothing, { ...system, isSuperuser, permissions: new Set(permissions) })).includes(
        'Nothing is wrong.',
      )
    expect([said([], true), said(all), said(['view_run@team-a', ...all.slice(1)])]).toEqual([true, true, false])
    for (const permission of all)
      expect([permission, said(all.filter((each) => each !== permission))]).toEqual([permission, false])
  })

  test('has one line for each, with a link to where it is', () => {
    const blocker = { pid: 4711, run: null, program: 'psql', state: 'active', openS: 12, statement: null }
    const run = { id: 'b7', title: 'apply oauth2 shop' } as NonNullable<Now['atWork']>[number]['run']
    const atWork = [{ id: 'b7', workS: 12, ageMs: 30_000, worker: null, blocker, run }]
    const teams = [{ owner: 'a', applied: 1, failing: 1, waiting: 0, changed_outside: 0, last: undefined }]
    const all = { pause: { by: { ...pause.by, reason: 'db maintenance' } }, checks: paused, atWork, teams }
    const shown = String(summary({ ...nothing, ...all }, { ...system, isSuperuser: true }))
    expect(shown.match(/<li>.*?<\/li>/g)?.map((each) => each.replaceAll(/<\/?(li|span|time)[^>]*>/g, ''))).toEqual([
      'Queue paused by alice 2026-11-23 12:00, db maintenance.',
      '<a href="/admin/runs/b7/">apply oauth2 shop is blocked: process 4711 (psql), active for 12 s, holds it</a>',
      '<a href="/admin/applications/?state=failing">1 application failing</a>',
    ])
    expect(shown).toContain('Resume the queue</a>')
  })

  test('is as bad as what it names', () => {
    const looks = [{}, { tokens: expiring(1) }, { pause, checks: paused }, { checks: noWorker }]
    const lookOf = (found: Partial<Now>) =>
      String(summary({ ...nothing, ...found }, system)).match(/summary (\w+)/)?.[1]
    expect(looks.map(lookOf)).toEqual(['good', 'warn', 'warn', 'bad'])
    expect(lookOf({ pause, checks: paused, failures: failed(3, 2) })).toBe('bad')
  })
})

describe('the strip of the parts', () => {
  const lines = (found: Partial<Now>) => String(parts({ ...nothing, ...found }))

  test('name each silent server, and count the others', () => {
    const shown = lines({ servers: [process(1), process(2), process(300)] })
    expect(shown).toMatch(/class="mark warn">2 servers<.*host-300\.example, 7: not heard for 5 min</)
    expect(shown).not.toMatch(/host-[12]\.example/)
    expect(lines({ servers: null })).toContain('servers not known')
  })

  test('a worker that was killed and replaced is one line, and no problem', () => {
    const replacing = { ...process(1), host: 'host-60.example', startedAt: new Date() }
    const workers = [replacing, process(60)]
    expect(lines({ workers })).toMatch(/class="mark good">1 worker<.*host-60\.example, 7: not heard for 60 s, replaced/)
    expect(saidOf({ workers })).toBe('Nothing is wrong.')
  })

  test('say why no worker takes jobs behind those that are silent', () => {
    const shown = lines({ workers: [process(60)], checks: noWorker })
    expect(shown).toMatch(/>0 workers<.* jobs; host-60\.example, 7: not heard for 60 s\. It does not answer\.<\/li>/)
  })

  test('say since when the queue is paused, in the zone of the caller', () => {
    expect(lines({ pause, checks: paused })).toMatch(/Pause<.*Queue paused by alice <time datetime="2026-11-23T12:00/s)
  })
})
