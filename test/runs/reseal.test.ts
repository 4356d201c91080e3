import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keyring, type SealedPlace } from '../../src/db/seal.ts'
import { judgeSecretKey, requireSecretKey } from '../../src/db/sealed-check.ts'
import { type Resealed, reseal, sealedColumns } from '../../src/runs/reseal.ts'
import { StartError } from '../../src/start-error.ts'
import { execute, kinds, named, rows, secretKey, sql } from '../support/kit.ts'
import { stand } from './stand.ts'

const newKey = 'another secret key for tests, 32 or more'
const [old, both, anew] = [keyring(secretKey), keyring(newKey, secretKey), keyring(newKey)]

const there = await stand()
for (const kind of kinds) {
  const { id } = await there.recorded(await named(kind, `sealed-${kind.replaceAll('_', '-')}`))
  await there.work(id)
}
const overlapping = await named('oauth2', 'sealed-oauth2', {
  provider: { client_secret: { value: 'a secret that replaces another', overlap: 'hours=1' } },
})
await there.work((await there.recorded(overlapping)).id)
await execute(
  there.db,
  sql`INSERT INTO runs (id, title, kind, request_id, blueprint, state, applied, finished_at)
      SELECT gen_random_uuid(), 'apply many', 'radius', 'r', '', 'done', true, now() FROM generate_series(1, 1000)`,
)
for (const { id } of await rows<{ id: string }>(there.db, sql`SELECT id FROM runs WHERE title = 'apply many'`))
  await there.db.run.update({
    where: { id },
    data: { blueprint: old.seal('version: 1', { table: 'runs', row: id, column: 'blueprint' }) },
  })

/** All envelopes of the database with their places. */
async function envelopes(): Promise<{ envelope: string; place: SealedPlace }[]> {
  const all = await Promise.all(
    sealedColumns(there.engine.registry).map(async ({ table, column, row, json }) => {
      const text = `SELECT "${row}"::text AS row, "${column}"::text AS value FROM "${table}" WHERE "${column}" IS NOT NULL`
      const found = await there.db.$queryRawUnsafe<{ row: string; value: string }[]>(text)
      return found.flatMap((each) => {
        const values: [string, string][] = json
          ? Object.entries<string>(JSON.parse(each.value)).map(([name, value]) => [`${column}.${name}`, value])
          : [[column, each.value]]
        return values.map(([name, envelope]) => ({ envelope, place: { table, row: each.row, column: name } }))
      })
    }),
  )
  return all.flat()
}

const opened = async (ring: typeof old) =>
  (await envelopes()).map(({ envelope, place }) => ring.open(envelope, place)).sort()

test('the secret before, of an overlap, is among them', async () => {
  const columns = (await envelopes()).map(({ place }) => `${place.table}.${place.column}`)
  expect(columns).toContain('providers.secrets.previous_client_secret')
})

test('every column that holds sealed values is known', async () => {
  const columns = await rows<{ table_name: string; column_name: string }>(
    there.db,
    sql`SELECT table_name, column_name FROM information_schema.columns
      WHERE table_schema = 'public' AND (column_name LIKE 'sealed%' OR column_name IN ('secrets', 'blueprint', 'generated'))`,
  )
  const known = sealedColumns(there.engine.registry).map(({ table, column }) => `${table}.${column}`)
  expect(columns.map((each) => `${each.table_name}.${each.column_name}`).sort()).toEqual(
    [...known, 'installation.sealed_check'].sort(),
  )
})

test('another SECRET_KEY is refused in one sentence, and the right one is not', async () => {
  await requireSecretKey(there.db, old)
  expect(await judgeSecretKey(there.db, old)).toBeNull()
  await expect(requireSecretKey(there.db, anew)).rejects.toThrow(StartError)
  await expect(requireSecretKey(there.db, anew)).rejects.toThrow(
    /^SECRET_KEY is not the key of this database .*SECRET_KEY_PREVIOUS\.$/,
  )
  expect(await judgeSecretKey(there.db, both)).toBeNull()
})

describe('all is sealed anew', () => {
  test('after a stop in the middle, beside a service with both keys', async () => {
    const before = await opened(old)
    expect(before.length).toBeGreaterThan(1_010)
    const stopped = reseal(there.db, there.engine.registry, both, ({ sealed }) => {
      if (sealed > 0) throw new Error('stopped')
    })
    await expect(stopped).rejects.toThrow('stopped')
    expect(await judgeSecretKey(there.db, anew)).not.toBeNull()
    expect(await opened(both)).toEqual(before)

    const done: Resealed[] = []
    await reseal(there.db, there.engine.registry, both, (each) => done.push(each))
    expect(done.find(({ place }) => place === 'runs.blueprint')?.sealed).toBeGreaterThanOrEqual(1_000)
    expect(await opened(anew)).toEqual(before)
    expect((await envelopes()).every(({ envelope }) => envelope.startsWith(anew.prefix))).toBe(true)
    expect(await judgeSecretKey(there.db, anew)).toBeNull()
    await requireSecretKey(there.db, anew)
    await expect(requireSecretKey(there.db, old)).rejects.toThrow(StartError)
  })

  test('again changes nothing', async () => {
    const before = await envelopes()
    const done: Resealed[] = []
    await reseal(there.db, there.engine.registry, both, (each) => done.push(each))
    expect(done.reduce((sum, { sealed, lost }) => sum + sealed + lost, 0)).toBe(0)
    expect(await envelopes()).toEqual(before)
  })

  test('but for what no key opens, which is counted and left', async () => {
    const { id } = await there.db.run.findFirstOrThrow({ where: { title: 'apply many' } })
    const foreign = keyring('a third secret key for tests, 32 or more')
    const lost = foreign.seal('x', { table: 'runs', row: id, column: 'blueprint' })
    await there.db.run.update({ where: { id }, data: { blueprint: lost } })
    const done: Resealed[] = []
    await reseal(there.db, there.engine.registry, both, (each) => done.push(each))
    expect(done.find(({ place }) => place === 'runs.blueprint')).toMatchObject({ sealed: 0, lost: 1 })
    expect((await there.run(id)).blueprint).toBe(lost)
    await there.db.run.delete({ where: { id } })
  })

  test('what an earlier version sealed under one key for all is opened, and sealed under keys of its own', async () => {
    const { id } = await there.db.run.findFirstOrThrow({ where: { title: 'apply many' } })
    const place = { table: 'runs', row: id, column: 'blueprint' }
    const blueprint = sealedByFirstVersion('version: 1 # long ago', place)
    expect(old.open(blueprint, place)).toBe('version: 1 # long ago')
    await there.db.run.update({ where: { id }, data: { blueprint } })
    await reseal(there.db, there.engine.registry, both, () => {})
    const { blueprint: sealed } = await there.run(id)
    expect(sealed).toMatch(/^v2\./)
    expect(anew.open(sealed ?? '', place)).toBe('version: 1 # long ago')
  })
})

function sealedByFirstVersion(text: string, { table, row, column }: SealedPlace): string {
  const key = Buffer.from(hkdfSync('sha256', secretKey, 'gatewright', 'seal', 32))
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(JSON.stringify([table, row, column])))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  const [, id] = old.seal('', { table, row, column }).split('.')
  return `v1.${id}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`
}
