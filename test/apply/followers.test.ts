import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Tx } from '../../src/db/client.ts'
import { nameLock } from '../../src/db/locks.ts'
import { KeyOf } from '../../src/document/document.ts'
import { type Conditions, nothingAllowed } from '../../src/plan/engine.ts'
import { held } from '../runs/stand.ts'
import { rows, sql } from '../support/sql.ts'
import { until } from '../support/until.ts'
import { application, bench, scim } from './engine.ts'

/** Rows that a document does not name, and deletes: they are judged as other transactions leave them. */

const there = await bench()
let name: string
beforeEach(() => {
  name = randomUUID()
})

const providers = () => there.db.provider.findMany({ where: { name }, select: { owner: true } })

/** Another transaction that writes the provider. @returns what commits it */
const writing = (change: (tx: Tx) => Promise<unknown>) =>
  held(there, async (tx) => {
    await rows(tx, sql`SELECT pg_advisory_xact_lock(${nameLock('providers', [name])}::bigint)::text`)
    await change(tx)
  })

/** How many wait for the lock of a name. */
const waiting = () =>
  rows(
    there.db,
    sql`SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  )
const untilItWaits = () => until(async () => (await waiting()).length > 0, { what: 'the apply to wait' })

describe('while another transaction writes it', () => {
  const pruning: Partial<Conditions> = { prune: true, owner: 'team-a', allow: { ...nothingAllowed, deletes: 1 } }
  const replacing: Partial<Conditions> = { replaceProvider: true }

  test('a row to prune is waited for, and stays when it belongs to another owner then', async () => {
    await there.apply([scim(name)], undefined, { owner: 'team-a' })
    const commit = await writing((tx) => tx.provider.updateMany({ where: { name }, data: { owner: 'team-b' } }))
    const refusal = there.refusal([application(name)], undefined, pruning)
    await untilItWaits()
    await commit()
    expect(await refusal).toMatchObject({ reason: 'conflict', logs: [expect.stringContaining('owner "team-b"')] })
    expect(await providers()).toEqual([{ owner: 'team-b' }])
  })

  describe('a replaced provider is waited for', () => {
    const withProvider = (of: string) => [
      { ...scim(of), id: 'provider' },
      application(name, { provider: new KeyOf('provider') }),
    ]

    test('and stays when another application has it then', async () => {
      await there.apply([...withProvider(name), application(`${name}-other`)])
      const [{ pk } = expect.fail('no provider')] = await there.db.provider.findMany({ where: { name } })
      const { pk: other } = await there.db.application.findUniqueOrThrow({ where: { slug: `${name}-other` } })
      const commit = await writing(async () => undefined)
      const applying = there.apply(withProvider(`${name}-new`), undefined, replacing)
      await untilItWaits()
      await there.db.backchannelProvider.create({ data: { applicationPk: other, providerPk: pk } })
      await commit()
      await applying
      expect(await providers()).toHaveLength(1)
    })

    test('and goes when nothing has it then', async () => {
      await there.apply(withProvider(name))
      const commit = await writing(async () => undefined)
      const applying = there.apply(withProvider(`${name}-new`), undefined, replacing)
      await untilItWaits()
      await commit()
      await applying
      expect(await providers()).toEqual([])
    })
  })
})
