import { describe, expect, test } from 'vitest'
import { sha256, uuid7 } from '../../src/ids.ts'
import { startReconciler } from '../../src/runs/reconcile.ts'
import { eraseExpired } from '../../src/runs/retention.ts'
import { execute, sql, until } from '../support/kit.ts'
import { stand } from './stand.ts'

const there = await stand()

describe('expired secrets are erased', () => {
  test('generated values, after they expire and not before', async () => {
    const [{ id: over }, { id: not }] = [await there.recorded(), await there.recorded()]
    const expire = (id: string, from: Date) =>
      there.db.run.update({ where: { id }, data: { generated: 'v1.sealed', generatedUntil: from } })
    await expire(over, new Date(Date.now() - 1_000))
    await expire(not, new Date(Date.now() + 3_600_000))
    await eraseExpired(there.db)
    expect(await there.run(over)).toMatchObject({ generated: null, generatedUntil: null })
    expect(await there.run(not)).toMatchObject({ generated: 'v1.sealed' })
  })

  test('the secret of a token that was not viewed, after a day', async () => {
    const make = (identifier: string, hours: number) =>
      there.db.token.create({
        data: {
          ...{ pk: uuid7(), identifier, userPk: there.adminPk, sealedKey: 'v1.sealed', expiring: false },
          keyHash: new Uint8Array(sha256(identifier)),
          createdAt: new Date(Date.now() - hours * 3_600_000),
        },
      })
    const [old, young] = [await make('old', 24.1), await make('young', 23.9)]
    await eraseExpired(there.db)
    const sealed = async ({ pk }: { pk: string }) =>
      (await there.db.token.findUniqueOrThrow({ where: { pk } })).sealedKey
    expect([await sealed(old), await sealed(young)]).toEqual([null, 'v1.sealed'])
  })

  test('idempotency keys, after a day and not before', async () => {
    const make = (key: string, hours: number) =>
      there.db.idempotencyKey.create({
        data: {
          ...{ submitterPk: there.adminPk, key, request: new Uint8Array(sha256(key)), runId: uuid7() },
          createdAt: new Date(Date.now() - hours * 3_600_000),
        },
      })
    await make('old', 24.1)
    await make('young', 23.9)
    await eraseExpired(there.db)
    expect((await there.db.idempotencyKey.findMany()).map(({ key }) => key)).toEqual(['young'])
  })

  test('access tokens of jobs, when their identity tokens are too old to come again', async () => {
    const key = uuid7()
    await there.db.trustedIssuer.create({
      data: { pk: key, name: 'ci', issuer: 'https://ci.example', audience: 'iam', clockSkew: 60, rules: [] },
    })
    const make = (identity: string, hours: number) =>
      there.db.exchangedToken.create({
        data: {
          ...{ pk: uuid7(), userPk: there.adminPk, issuerPk: key, rule: {}, pipeline: {}, identity, trust: '' },
          ...{ keyHash: new Uint8Array(sha256(identity)), expires: new Date() },
          createdAt: new Date(Date.now() - hours * 3_600_000),
        },
      })
    await make('old', 25.1)
    await make('young', 24.9)
    await eraseExpired(there.db)
    expect((await there.db.exchangedToken.findMany()).map(({ identity }) => identity)).toEqual(['young'])
  })

  test('a limited number at once', async () => {
    await execute(
      there.db,
      sql`
      INSERT INTO runs (id, title, kind, request_id, blueprint, state, applied, finished_at, generated, generated_until)
      SELECT gen_random_uuid(), 'apply long ago', 'radius', 'r', 'v1.sealed', 'done', true, now(), 'v1.sealed', now() - interval '1 hour'
      FROM generate_series(1, 2500)`,
    )
    const left = () => there.db.run.count({ where: { title: 'apply long ago', generated: { not: null } } })
    const counts: number[] = []
    for (let round = 0; round < 3; round += 1) {
      await eraseExpired(there.db)
      counts.push(await left())
    }
    expect(counts).toEqual([1_500, 500, 0])
  })

  test('by a worker, while no run waits too', async () => {
    const { id } = await there.recorded()
    const past = new Date(Date.now() - 1_000)
    const done = {
      state: 'done',
      applied: true,
      finishedAt: past,
      generated: 'v1.sealed',
      generatedUntil: past,
    } as const
    await there.db.run.update({ where: { id }, data: done })
    const queue = { wake: async () => {}, enqueue: async () => {}, isQueued: async () => true }
    const reconciler = startReconciler(there.db, queue, there.worker)
    const erased = await until('them to be erased', async () => (await there.run(id)).generated === null)
    await reconciler.stop()
    expect(erased).toBe(true)
  })
})
