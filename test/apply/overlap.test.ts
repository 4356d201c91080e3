import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deleteOverlaps, startRetention } from '../../src/runs/retention.ts'
import { rows, sql, until } from '../support/kit.ts'
import { bench, oauth2 } from './engine.ts'

/** The client secret before stays valid for a time, beside the one that replaced it. */

const there = await bench()
let name: string
beforeEach(() => {
  name = randomUUID()
})
afterEach(() => {
  vi.useRealTimers()
})

const first = 'the first secret of the client'
const second = 'the second secret of the client'
const third = 'the third secret of the client'

const apply = (client_secret: unknown, others: Record<string, unknown> = {}) =>
  there.apply([oauth2(name, { client_secret, ...others })])

/** Both secrets, opened, and the end of the overlap. */
async function stored() {
  const { uuid, settings, secrets } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  const { client_secret, previous_client_secret, ...others } = Object(secrets)
  const open = (envelope: string, column: string) =>
    JSON.parse(there.engine.keyring.open(envelope, { table: 'providers', row: uuid, column }))
  expect(others).toEqual({})
  return {
    now: open(client_secret, 'secrets.client_secret'),
    before:
      previous_client_secret === undefined ? null : open(previous_client_secret, 'secrets.previous_client_secret'),
    until: Object(settings).previous_client_secret_expires ?? null,
  }
}

/** Seconds from now, by the database's clock. */
async function secondsUntil(until: string): Promise<number> {
  const [row] = await rows<{ seconds: number }>(
    there.db,
    sql`SELECT extract(epoch FROM ${until}::timestamptz - now())::float8 AS seconds`,
  )
  return row?.seconds ?? Number.NaN
}

describe('a changed secret with an overlap', () => {
  test.each(['seconds=90', 'minutes=1.5', 'minutes=1;seconds=30'])(
    'leaves the one before valid for %s',
    async (overlap) => {
      await apply(first)
      const { logs, changes, audited } = await apply({ value: second, overlap })
      const { until, ...both } = await stored()
      expect(both).toEqual({ now: second, before: first })
      expect(until).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      expect(await secondsUntil(until)).toBeGreaterThan(80)
      expect(await secondsUntil(until)).toBeLessThan(92)
      expect(logs).toEqual([
        `provider oauth2 "${name}" updated: client_secret changed (the one before is valid until ${until})`,
      ])
      expect(changes[0]?.fields).toEqual({
        client_secret: 'changed',
        previous_client_secret_expires: { from: null, to: { set_by_server: true } },
      })
      expect(audited).toMatchObject([{ fields: ['client_secret'] }])
    },
  )

  test('counts its time by the clock of the database', async () => {
    await apply(first)
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2001-01-01T00:00:00Z') })
    await apply({ value: second, overlap: 'hours=24' })
    vi.useRealTimers()
    expect(Math.abs((await secondsUntil((await stored()).until)) - 86_400)).toBeLessThan(10)
  })

  test('may be generated', async () => {
    await apply(first)
    const { generated } = await apply({ generate: true, overlap: 'days=90' })
    const made = generated[`provider oauth2 "${name}"`]?.client_secret
    expect(made).toMatch(/^\w{128}$/)
    expect(await stored()).toMatchObject({ now: made, before: first })
  })

  test('replaces the one before that', async () => {
    await apply(first)
    await apply({ value: second, overlap: 'hours=24' })
    const { until: from } = await stored()
    const { changes } = await apply({ value: third, overlap: 'hours=1' })
    const { until, ...both } = await stored()
    expect(both).toEqual({ now: third, before: second })
    expect(until < from).toBe(true)
    expect(changes[0]?.fields.previous_client_secret_expires).toEqual({ from, to: { set_by_server: true } })
  })

  test('keeps no empty one: any party has it', async () => {
    await apply('', { client_type: 'public' })
    const { logs } = await apply({ value: second, overlap: 'hours=1' })
    expect(await stored()).toEqual({ now: second, before: null, until: null })
    expect(logs).toEqual([`provider oauth2 "${name}" updated: client_secret changed`])
  })

  test('of a new row has none before it', async () => {
    await apply({ value: first, overlap: 'hours=1' })
    expect(await stored()).toEqual({ now: first, before: null, until: null })
  })
})

describe('both stay as they are', () => {
  beforeEach(async () => {
    await apply(first)
    await apply({ value: second, overlap: 'hours=1' })
  })

  test.each([
    ['the same with a longer overlap', { value: second, overlap: 'hours=48' }, {}, /unchanged$/],
    ['the same without an overlap', second, {}, /unchanged$/],
    [
      'another field that changes',
      { value: second, overlap: 'hours=48' },
      { sub_mode: 'user_email' },
      /updated: sub_mode "hashed_user_id" -> "user_email"$/,
    ],
  ])('with %s', async (_, secret, others, line) => {
    const before = await stored()
    const { logs } = await apply(secret, others)
    expect(logs).toEqual([expect.stringMatching(line)])
    expect(await stored()).toEqual(before)
  })

  test('a change without an overlap ends the one before at once', async () => {
    const { until } = await stored()
    const { changes } = await apply(third)
    expect(await stored()).toEqual({ now: third, before: null, until: null })
    expect(changes[0]?.fields).toEqual({
      client_secret: 'changed',
      previous_client_secret_expires: { from: until, to: null },
    })
  })

  test('until the time is over: then it is deleted, and no other one', async () => {
    const over = name
    name = randomUUID()
    const lasting = name
    await apply(first)
    await apply({ value: second, overlap: 'hours=1' })
    expect(await deleteOverlaps(there.db, there.engine.registry)).toBe(0)
    const { settings } = await there.db.provider.findUniqueOrThrow({ where: { name: over } })
    const past = { ...Object(settings), previous_client_secret_expires: '2026-01-31T10:00:00Z' }
    await there.db.provider.update({ where: { name: over }, data: { settings: past } })
    expect(await deleteOverlaps(there.db, there.engine.registry)).toBe(1)
    name = over
    expect(await stored()).toEqual({ now: second, before: null, until: null })
    name = lasting
    expect(await stored()).toMatchObject({ now: second, before: first })
  })

  test('a worker deletes it when its time is over', async () => {
    const { settings } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    const past = { ...Object(settings), previous_client_secret_expires: '2026-01-31T10:00:00Z' }
    await there.db.provider.update({ where: { name }, data: { settings: past } })
    const keep = { runDays: 90, auditDays: 400 }
    const retention = startRetention(there.db, there.engine.registry, keep, pino({ level: 'silent' }))
    await until('it to be deleted', async () => (await stored()).before === null)
    await retention.stop()
    expect(await stored()).toEqual({ now: second, before: null, until: null })
  })
})

describe('is refused', () => {
  const form = 'client_secret: Takes either "generate": true or "value" beside "overlap", and nothing else.'
  test.each<[what: string, secret: unknown, message: string]>([
    ['no overlap', { value: second }, 'client_secret: Must be text.'],
    ['no secret', { overlap: 'hours=1' }, form],
    ['both', { generate: true, value: second, overlap: 'hours=1' }, form],
    ['generate: false', { generate: false, overlap: 'hours=1' }, form],
    ['another field', { value: second, overlap: 'hours=1', length: 5 }, form],
    ['null', { value: null, overlap: 'hours=1' }, 'client_secret: Must be text.'],
    ['a number', { value: second, overlap: 24 }, 'client_secret.overlap: Must be text.'],
    [
      'no duration',
      { value: second, overlap: 'a day' },
      'client_secret.overlap: Must be a duration such as hours=1;minutes=30.',
    ],
    ...['seconds=0', 'hours=-1', 'days=90;seconds=1'].map((overlap): [string, unknown, string] => [
      overlap,
      { value: second, overlap },
      'client_secret.overlap: Must be from seconds=1 to days=90.',
    ]),
  ])('%s', async (_, client_secret, message) => {
    const { logs } = await there.refusal([oauth2(name, { client_secret })])
    expect(logs).toEqual([`rolled back: entries.0.${message}`])
  })

  test('for a field without an overlap', async () => {
    const { logs } = await there.refusal([oauth2(name, { client_id: { value: 'x', overlap: 'hours=1' } })])
    expect(logs).toEqual(['rolled back: entries.0.client_id: Must be text.'])
  })
})
