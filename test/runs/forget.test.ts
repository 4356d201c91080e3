import { expect, test } from 'vitest'
import { keyring } from '../../src/db/seal.ts'
import { judgeSecretKey } from '../../src/db/sealed-check.ts'
import { sha256, uuid7 } from '../../src/ids.ts'
import { findLost, forget } from '../../src/runs/forget.ts'
import { sealedColumns } from '../../src/runs/reseal.ts'
import { execute, kinds, named, secretKey, sql, tablesOf } from '../support/kit.ts'
import { stand } from './stand.ts'

/** What is left when a key is lost. test/e2e/backup.test.ts has the program, and the service afterwards. */

const newKey = 'another secret key for tests, 32 or more'
const [old, anew] = [keyring(secretKey), keyring(newKey)]

const there = await stand()
const { db, url, engine } = there
for (const kind of kinds) {
  const { id } = await there.recorded(await named(kind, `sealed-${kind.replaceAll('_', '-')}`))
  await there.work(id)
}
const overlapping = await named('oauth2', 'sealed-oauth2', {
  provider: { client_secret: { value: 'a secret that replaces another', overlap: 'hours=1' } },
})
await there.work((await there.recorded(overlapping)).id)
const generating = await there.recorded(await named('radius', 'generated', { provider: { shared_secret: undefined } }))
await there.work(generating.id)
const { id: waiting } = await there.recorded()
const [{ pk: provider } = { pk: 0 }] = await db.provider.findMany({
  where: { name: 'sealed-oauth2' },
  select: { pk: true },
})
await db.totpDevice.create({
  data: {
    uuid: crypto.randomUUID(),
    userPk: there.adminPk,
    name: 'phone',
    sealedKey: old.seal('"A"', { table: 'totp_devices', row: 'x', column: 'sealed_key' }),
  },
})
await db.token.updateMany({
  where: { identifier: 'bootstrap' },
  data: { sealedKey: old.seal('gw', { table: 'tokens', row: 'x', column: 'sealed_key' }) },
})
await execute(
  db,
  sql`INSERT INTO idempotency_keys (submitter_pk, key, request, run_id) VALUES (${there.adminPk}, 'k', '', gen_random_uuid())`,
)
await db.trustedIssuer.create({
  data: {
    ...{ pk: uuid7(), name: 'ci', issuer: 'https://ci.example', audience: 'iam', clockSkew: 60, rules: [] },
    tokens: {
      create: {
        ...{ pk: uuid7(), userPk: there.adminPk, rule: {}, pipeline: {}, identity: 'job', trust: '' },
        ...{ keyHash: new Uint8Array(sha256('gw_a_job')), expires: new Date(Date.now() + 600_000) },
      },
    },
  },
})
/** Sealed under the new key already, as after a rotation that was broken off. */
const kept = anew.seal('"kept"', { table: 'providers', row: 'x', column: 'secrets.client_secret' })
await execute(
  db,
  sql`UPDATE providers SET secrets = jsonb_build_object('shared_secret', ${kept}::text, 'none', NULL) WHERE name = 'sealed-radius'`,
)

const lostWith = (ids: readonly string[]) => findLost(url, engine.registry, ids)
const option = { identifier: 'recovery-1', keep: () => {} }

test('nothing is lost with the key, and what is lost without it has its name', async () => {
  expect(await lostWith([...old.ids, ...anew.ids])).toEqual([])
  const lost = new Map((await lostWith(anew.ids)).map((each) => [each.place, each]))
  const places = sealedColumns(engine.registry).map(({ table, column }) => `${table}.${column}`)
  expect([...lost.keys()].sort()).toEqual([...places, 'installation.sealed_check'].sort())
  expect(lost.get('totp_devices.sealed_key')).toMatchObject({ count: 1, names: ['"phone" of admin'] })
  expect(lost.get('tokens.sealed_key')).toMatchObject({ names: ['bootstrap'] })
  expect(lost.get('certificate_key_pairs.sealed_key')?.names.length).toBe(1)
  expect(lost.get('providers.secrets')?.names).toContain(
    'oauth2 "sealed-oauth2": client_secret, previous_client_secret',
  )
  expect(lost.get('providers.secrets')?.names.join()).not.toContain('sealed-radius')
  expect(lost.get('runs.blueprint')?.names).toEqual([])
})

test('a forget that fails changes nothing', async () => {
  const before = await tablesOf(url)
  const keep = () => {
    throw new Error('no room for the token')
  }
  await expect(forget(url, engine.registry, anew, { ...option, keep })).rejects.toThrow('no room')
  expect(await tablesOf(url)).toEqual(before)
})

test('what the key does not open is cleared, and all other columns stay', async () => {
  const before = await tablesOf(url)
  const secrets: string[] = []
  const hasSuperuser = await forget(url, engine.registry, anew, {
    ...option,
    keep: (secret) => void secrets.push(secret),
  })
  expect([hasSuperuser, secrets]).toEqual([true, [expect.stringMatching(/^gw_a_/)]])
  expect(await lostWith(anew.ids)).toEqual([])
  expect(await judgeSecretKey(db, anew)).toBe(null)

  expect(await db.provider.findUniqueOrThrow({ where: { pk: provider } })).toMatchObject({
    secrets: {},
    settings: expect.not.objectContaining({ previous_client_secret_expires: expect.anything() }),
  })
  const radius = await db.provider.findUniqueOrThrow({ where: { name: 'sealed-radius' } })
  expect(radius.secrets).toEqual({ shared_secret: kept, none: null })
  expect(await db.totpDevice.count()).toBe(0)
  expect(await db.idempotencyKey.count()).toBe(0)
  expect(await db.exchangedToken.count()).toBe(0)
  expect(await there.run(waiting)).toMatchObject({
    state: 'cancelled',
    reason: 'cancelled',
    blueprint: null,
    logs: [expect.stringContaining('a key that is lost')],
  })
  expect(
    await db.run.count({
      where: { OR: [{ blueprint: { not: null } }, { generated: { not: null } }, { document: { not: null } }] },
    }),
  ).toBe(0)
  const { action, changes, objects } = await db.auditRow.findFirstOrThrow({ orderBy: { pk: 'desc' } })
  expect(action).toBe('forget_secrets')
  expect(objects).toContain('service_providers_oauth2.oauth2provider=sealed-oauth2')
  const audited = changes as { model: string; key: unknown; action: string; fields: string[]; object?: object }[]
  const of = (model: string) => audited.filter((each) => each.model === model)
  expect(of('service_providers_oauth2.oauth2provider')).toEqual([
    expect.objectContaining({
      ...{ key: provider, action: 'update', fields: ['client_secret', 'previous_client_secret'] },
      object: expect.objectContaining({
        name: 'sealed-oauth2',
        fields: { client_secret: 'changed', previous_client_secret: 'changed' },
      }),
    }),
  ])
  expect(of('service_core.token')).toMatchObject([
    { action: 'update', fields: ['sealed_key'], object: { name: 'bootstrap' } },
    { action: 'create', object: { name: 'recovery-1' } },
  ])
  expect(of('service_crypto.certificatekeypair')).toMatchObject([{ fields: ['key_data'] }])
  expect(of('service_stages_totp.totpdevice')).toMatchObject([{ action: 'delete', object: { name: 'phone' } }])
  // Runs have no names.
  expect(of('runs')).toMatchObject([
    { key: expect.stringMatching(/^\d+ rows$/), fields: ['blueprint'] },
    { key: '1 rows', fields: ['generated'] },
  ])

  const after = await tablesOf(url)
  const touched = [
    'application_states',
    'audit_rows',
    'certificate_key_pairs',
    'consumer_changes',
    'exchanged_tokens',
    'idempotency_keys',
    'installation',
    'providers',
    'row_counts',
    'runs',
    'tokens',
    'totp_devices',
  ]
  expect(Object.keys(before).filter((name) => before[name]?.join() !== after[name]?.join())).toEqual(touched)
  const without = (all: string[] = []) =>
    all
      .map((row) => ({ ...JSON.parse(row), secrets: 0, settings: 0, sealed_key: 0, sealed_check: 0 }))
      .filter(({ identifier }) => identifier !== 'recovery-1')
  for (const name of ['certificate_key_pairs', 'installation', 'providers', 'tokens'])
    expect(without(after[name])).toEqual(without(before[name]))
})

test('of very many objects, the audit row has the number of the last ones', async () => {
  const sealed = old.seal('"key"', { table: 'certificate_key_pairs', row: 'x', column: 'sealed_key' })
  await execute(
    db,
    sql`INSERT INTO certificate_key_pairs (pk, name, certificate_data, sealed_key)
      SELECT gen_random_uuid(), 'many-' || each, '', ${sealed} FROM generate_series(1, 1002) each`,
  )
  await forget(url, engine.registry, anew, { ...option, identifier: 'recovery-2' })
  const { changes } = await db.auditRow.findFirstOrThrow({ orderBy: { pk: 'desc' } })
  const audited = changes as { model: string; key: string; object?: object }[]
  expect(audited.filter(({ object }) => object !== undefined)).toHaveLength(1_001)
  expect(audited).toContainEqual({
    ...{ model: 'certificate_key_pairs', key: '2 more rows' },
    ...{ action: 'update', fields: ['sealed_key'] },
  })
})
