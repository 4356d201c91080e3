import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { sealOpenSecrets } from '../../src/runs/seal-open.ts'
import { bench, oauth2, shipped } from '../apply/engine.ts'
import { rows, run, sql } from '../support/sql.ts'
import { statementsOf } from '../support/statements.ts'
import { until } from '../support/until.ts'
import { held } from './stand.ts'

/** Version 0.1.0 stored the settings of RAC providers in the open: they were no secret to it. */

const there = await bench()
const { db, engine } = there

const racs = 120
const password = 'marker-of-a-password'
const rac = (name: string, attrs: Record<string, unknown>) => ({
  model: 'service_providers_rac.racprovider',
  identifiers: { name },
  attrs: { authorization_flow: shipped.flow, ...attrs },
})

beforeEach(async () => {
  await run(db, sql`DELETE FROM providers`)
  await run(
    db,
    sql`INSERT INTO providers (uuid, kind, name, authorization_flow, settings)
      SELECT gen_random_uuid(), 'rac', 'rac ' || i, ${shipped.flow}::uuid, jsonb_build_object(
        'settings', jsonb_build_object('password', ${password}::text, 'number', i, 'tiny', 5e-324, 'huge', 1e300),
        'connection_expiry', 'hours=4', 'property_mappings', '[]'::jsonb, 'delete_token_on_disconnect', true)
      FROM generate_series(1, ${racs}::integer) i`,
  )
})

const waiting = sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`

const seal = () => sealOpenSecrets(db, engine.registry, engine.keyring)
const stored = () => rows<{ row: string }>(db, sql`SELECT to_jsonb(p)::text AS row FROM providers p ORDER BY pk`)
const inOpen = async () => (await stored()).filter(({ row }) => row.includes(password)).length

test('all are sealed, and nothing else is changed: sent again, they are unchanged', async () => {
  expect(await inOpen()).toBe(racs)
  expect(await seal()).toBe(racs)
  expect(await inOpen()).toBe(0)
  const before = await stored()
  expect(before[6]?.row).toContain('"settings": {"connection_expiry": "hours=4", "property_mappings": []')
  for (const i of [1, 50, 51, racs])
    expect(
      await there.apply([rac(`rac ${i}`, { settings: { huge: 1e300, tiny: 5e-324, number: i, password } })]),
    ).toMatchObject({
      logs: [`provider rac "rac ${i}" unchanged`],
    })
  expect(await seal()).toBe(0)
  expect(await stored()).toEqual(before)
})

test('when all is sealed, the providers of all kinds are looked through at once', async () => {
  await seal()
  expect(await statementsOf(seal)).toHaveLength(1)
})

test('what is changed meanwhile stays as it was changed', async () => {
  const changed = rac('rac 7', { settings: { password: 'of now' } })
  const commit = await held(there, (tx) =>
    run(
      tx,
      sql`UPDATE providers SET settings = jsonb_set(settings, '{settings}', '{"password": "of now"}')
        WHERE name = 'rac 7'`,
    ),
  )
  const sealing = seal()
  await until(async () => (await rows(db, waiting)).length > 0, { what: 'the update that waits for the row' })
  await commit()
  expect(await sealing).toBe(racs - 1)
  expect(await there.apply([changed])).toMatchObject({ logs: ['provider rac "rac 7" unchanged'] })
  expect(await seal()).toBe(1)
  expect(await inOpen()).toBe(0)
  expect(await there.apply([changed])).toMatchObject({ logs: ['provider rac "rac 7" unchanged'] })
})

test('a setting of another kind may have the same name', async () => {
  const name = randomUUID()
  await there.apply([oauth2(name)])
  await db.provider.update({ where: { name }, data: { settings: { settings: 'of another kind' } } })
  await seal()
  expect((await db.provider.findUniqueOrThrow({ where: { name } })).settings).toEqual({ settings: 'of another kind' })
})

describe('what is not sealed yet', () => {
  let name: string
  beforeEach(() => {
    name = randomUUID()
  })
  const provider = async () => {
    const { settings, secrets } = await db.provider.findUniqueOrThrow({ where: { name } })
    return { settings: settings as Record<string, unknown>, secrets: secrets as Record<string, string> }
  }
  const unchanged = () => [`provider rac "${name}" unchanged`]
  const settings = { password: 'in the open', nested: { list: [1, null] } }
  /** As version 0.1.0 wrote it. @param secrets what a version of today had sealed before */
  const stored = async (secrets: Record<string, string> = {}) => {
    if (!(await db.provider.findUnique({ where: { name } }))) await there.apply([rac(name, {})])
    const { settings: others } = await provider()
    await db.provider.update({ where: { name }, data: { settings: { ...others, settings }, secrets } })
  }
  const logs = async (attrs: Record<string, unknown>) => (await there.apply([rac(name, attrs)])).logs

  test('is known: sent again, it is unchanged, and sent otherwise, it is updated and sealed', async () => {
    await stored()
    expect(await logs({ settings: structuredClone(settings) })).toEqual(unchanged())
    expect(await logs({ settings: { password: 'another' } })).toEqual([
      `provider rac "${name}" updated: settings changed`,
    ])
    const after = await provider()
    expect(after.settings).toEqual({
      property_mappings: [],
      connection_expiry: 'hours=8',
      delete_token_on_disconnect: false,
    })
    expect(after.secrets).toEqual({ settings: expect.stringMatching(/^v2\./) })
    expect(await logs({ settings: { password: 'another' } })).toEqual(unchanged())
  })

  test('is sealed by whatever else changes in its row', async () => {
    await stored()
    expect(await logs({ connection_expiry: 'hours=1' })).toEqual([
      `provider rac "${name}" updated: connection_expiry "hours=8" -> "hours=1"`,
    ])
    expect(JSON.stringify(await provider())).not.toContain('in the open')
    expect(await logs({ settings })).toEqual(unchanged())
  })

  test('is newer than what is sealed: a worker of that version wrote it later', async () => {
    await there.apply([rac(name, { settings: { password: 'sealed' } })])
    await stored((await provider()).secrets)
    expect(await logs({ settings })).toEqual(unchanged())
    await logs({ connection_expiry: 'hours=1' })
    expect(await logs({ settings })).toEqual(unchanged())
  })
})
