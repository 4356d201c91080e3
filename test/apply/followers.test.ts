import { describe, expect, test } from 'vitest'
import type { Tx } from '../../src/db/client.ts'
import { nameLock } from '../../src/db/locks.ts'
import { KeyOf } from '../../src/document/document.ts'
import { type Conditions, nothingAllowed } from '../../src/plan/engine.ts'
import { held } from '../runs/stand.ts'
import { name, rows, sql, until } from '../support/kit.ts'
import { application, bench, scim } from './engine.ts'

/** Rows that a document does not name, and deletes: they are judged as other transactions leave them. */

const there = await bench()

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
const untilItWaits = () => until('the apply to wait', async () => (await waiting()).length > 0)

describe('while another transaction writes it', () => {
  /** The owner of this test alone. */
  const own = () => ({ owner: name })
  const pruning = (deletes: number): Partial<Conditions> => ({
    ...{ prune: true, ...own() },
    allow: { ...nothingAllowed, deletes, takeover: true },
  })
  const replacing: Partial<Conditions> = { replaceProvider: true }

  test('a row to prune is waited for, and stays when it belongs to another owner then', async () => {
    await there.apply([scim(name)], undefined, own())
    const commit = await writing((tx) => tx.provider.updateMany({ where: { name }, data: { owner: 'team-b' } }))
    const applying = there.apply([application(name)], undefined, pruning(1))
    await untilItWaits()
    await commit()
    expect((await applying).logs).toEqual([expect.stringMatching(/^application ".*" created/)])
    expect(await providers()).toEqual([{ owner: 'team-b' }])
  })

  test('a number that no longer holds is refused', async () => {
    await there.apply([scim(name), scim(`${name}-2`)], undefined, own())
    const commit = await writing((tx) => tx.provider.updateMany({ where: { name }, data: { owner: 'team-b' } }))
    const refusal = there.refusal([application(name)], undefined, pruning(2))
    await untilItWaits()
    await commit()
    expect((await refusal).logs).toEqual([expect.stringMatching(/prune would delete 1, and not 2: provider scim/)])
  })

  describe('an application to prune', () => {
    const withProvider = () => [{ ...scim(name), id: 'p' }, application(name, { provider: new KeyOf('p') })]
    const applications = () => there.db.application.findMany({ where: { name: `Application ${name}` } })

    test('that is renamed meanwhile goes with its provider', async () => {
      await there.apply(withProvider(), undefined, own())
      const commit = await writing((tx) =>
        tx.application.updateMany({ where: { slug: name }, data: { slug: 'other' } }),
      )
      const applying = there.apply([], undefined, pruning(2))
      await untilItWaits()
      await commit()
      expect((await applying).logs).toEqual([
        expect.stringContaining('application "other" deleted'),
        expect.stringContaining(`provider scim "${name}" deleted`),
      ])
      expect([await applications(), await providers()]).toEqual([[], []])
    })

    test('that another owner takes meanwhile stays, and its provider with it', async () => {
      await there.apply(withProvider(), undefined, own())
      const commit = await writing((tx) =>
        tx.application.updateMany({ where: { slug: name }, data: { owner: 'team-b' } }),
      )
      const applying = there.apply([], undefined, pruning(2))
      await untilItWaits()
      await commit()
      expect((await applying).logs).toEqual([])
      expect([await applications(), await providers()]).toMatchObject([[{ owner: 'team-b' }], [own()]])
    })
  })

  test('documents that prune the same rows wait for each other, and neither is a deadlock', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `${name}-${index}`)
    for (let round = 1; round <= 5; round += 1) {
      await there.apply(
        names.map((each) => scim(each)),
        undefined,
        own(),
      )
      const all = pruning(19)
      const ends = await Promise.allSettled([
        there.apply([scim(names[0] ?? '')], undefined, all),
        there.apply([scim(names[19] ?? '')], undefined, all),
        there.apply(
          names.toReversed().map((each) => scim(each)),
          undefined,
          own(),
        ),
      ])
      const failures = ends.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []))
      expect(failures.filter((text) => /deadlock/i.test(text))).toEqual([])
    }
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
