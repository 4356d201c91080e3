import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Db, Tx } from '../../src/db/client.ts'
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

/** The connections that wait for a lock. */
const waiting = () =>
  rows(there.db, sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
const untilItWaits = () => until('the apply to wait', async () => (await waiting()).length > 0)

describe('while another transaction writes it', () => {
  /** The stack and the owner of this test alone. */
  const own = () => ({ stack: name, owner: name })
  const deleting = (deletes: number): Partial<Conditions> => ({
    ...own(),
    allow: { ...nothingAllowed, deletes, takeover: true },
  })
  const replacing: Partial<Conditions> = { replaceProvider: true }
  const stacks = () =>
    rows<{ stack: string; left: boolean }>(
      there.db,
      sql`SELECT stack, left_at IS NOT NULL AS left FROM stack_members m JOIN providers p ON p.pk::text = m.key
        WHERE p.name = ${name} AND m.model LIKE 'service_providers_%'`,
    )
  /** Another stack takes the provider over. */
  const taking = async (tx: Tx | Db) => {
    await tx.stack.upsert({ where: { name: 'other' }, create: { name: 'other' }, update: {} })
    await tx.provider.updateMany({ where: { name }, data: { owner: 'team-b' } })
    const { pk } = await tx.provider.findFirstOrThrow({ where: { name } })
    await tx.stackMember.updateMany({ where: { key: String(pk) }, data: { stackName: 'other' } })
  }

  test('a row that is left over is waited for, and stays in another stack that took it', async () => {
    await there.apply([scim(name)], undefined, own())
    const commit = await writing(taking)
    const applying = there.apply([application(name)], undefined, deleting(1))
    await untilItWaits()
    await commit()
    expect((await applying).logs).toEqual([expect.stringMatching(/^application ".*" created/)])
    expect([await providers(), await stacks()]).toEqual([[{ owner: 'team-b' }], [{ stack: 'other', left: false }]])
  })

  test('a number that no longer holds is refused', async () => {
    await there.apply([scim(name), scim(`${name}-2`)], undefined, own())
    const commit = await writing(taking)
    const refusal = there.refusal([application(name)], undefined, deleting(2))
    await untilItWaits()
    await commit()
    expect((await refusal).logs).toEqual([expect.stringMatching(/1 left over, and not 2: provider scim/)])
  })

  test('a row that stays is not taken back from a stack that took it meanwhile', async () => {
    await there.apply([scim(name)], undefined, own())
    // The members are read, and the application cannot be written: its slug was inserted and is not committed.
    const commit = await held(there, async (tx) => {
      const { pk } = await tx.application.create({ data: { pk: randomUUID(), name, slug: name } })
      await tx.application.delete({ where: { pk } })
    })
    const applying = there.apply([application(name)], undefined, own())
    await untilItWaits()
    await taking(there.db)
    await commit()
    await applying
    expect(await stacks()).toEqual([{ stack: 'other', left: false }])
  })

  describe('and names it by its key, so that neither waits for the name', () => {
    const unowned = () => ({ stack: name, owner: null, allow: nothingAllowed })
    /** An apply of another stack records the provider, and is not committed. @returns what commits it */
    const recording = () =>
      held(there, async (tx) => {
        const { pk } = await tx.provider.findFirstOrThrow({ where: { name } })
        const [stackName, model, key] = ['other', 'service_providers_scim.scimprovider', String(pk)]
        await tx.stack.upsert({ where: { name: stackName }, create: { name: stackName }, update: {} })
        const where = { model_key: { model, key } }
        await tx.stackMember.upsert({ where, create: { model, key, stackName }, update: { stackName } })
      })
    const changed = () => ({ ...scim(name), attrs: { ...scim(name).attrs, verify_certificates: false } })

    test.each([
      ['a row of no stack is not taken from it', false, () => [scim(name)], {}],
      ['a row of the stack is not taken back', true, () => [{ ...scim(name), retain: true }], {}],
      ['a row that changes is not taken back', true, () => [changed()], {}],
      ['a row is not deleted', true, () => [{ ...scim(name), state: 'absent', attrs: {} } as const], {}],
      ['a row that is left over is not deleted', true, () => [application(name)], { deletes: 1 }],
    ] as const)('%s', async (_, isOwn, entries, allow) => {
      await there.apply([scim(name)], undefined, { stack: isOwn ? name : null, owner: null })
      const commit = await recording()
      const conditions = { ...unowned(), allow: { ...nothingAllowed, ...allow } }
      const refusal = there.refusal(entries(), undefined, conditions)
      await untilItWaits()
      await commit()
      expect((await refusal).logs.join()).toContain(
        `provider scim "${name}" belongs to stack "other", and the request is of stack "${name}"`,
      )
      expect([await providers(), await stacks()]).toEqual([[{ owner: null }], [{ stack: 'other', left: false }]])
    })

    test('one of two applies at the same moment is refused', async () => {
      for (let round = 1; round <= 10; round += 1) {
        await there.apply([scim(`${name}-${round}`)], undefined, { owner: null })
        const { pk } = await there.db.provider.findFirstOrThrow({ where: { name: `${name}-${round}` } })
        const byKey = { ...scim(name), identifiers: { pk }, attrs: {} }
        const ends = await Promise.allSettled([
          there.apply([scim(`${name}-${round}`)], undefined, { ...unowned(), stack: `${name}-a` }),
          there.apply([byKey], undefined, { ...unowned(), stack: `${name}-b` }),
        ])
        expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      }
    })
  })

  describe('an application that is left over', () => {
    const withProvider = () => [{ ...scim(name), id: 'p' }, application(name, { provider: new KeyOf('p') })]
    const applications = () => there.db.application.findMany({ where: { name: `Application ${name}` } })

    test('and is renamed meanwhile goes with its provider', async () => {
      await there.apply(withProvider(), undefined, own())
      const commit = await writing((tx) =>
        tx.application.updateMany({ where: { slug: name }, data: { slug: 'other' } }),
      )
      const applying = there.apply([], undefined, deleting(2))
      await untilItWaits()
      await commit()
      expect((await applying).logs).toEqual([
        expect.stringContaining('application "other" deleted'),
        expect.stringContaining(`provider scim "${name}" deleted`),
      ])
      expect([await applications(), await providers()]).toEqual([[], []])
    })

    test('and leaves the stack meanwhile stays, and its provider is refused', async () => {
      await there.apply(withProvider(), undefined, own())
      const commit = await writing((tx) =>
        tx.stackMember.deleteMany({ where: { stackName: name, model: 'service_core.application' } }),
      )
      const refusal = there.refusal([], undefined, deleting(2))
      await untilItWaits()
      await commit()
      expect((await refusal).logs.join()).toContain(`is the provider of application "${name}": change or delete that`)
      expect([await applications(), await providers()]).toMatchObject([[{ owner: name }], [{ owner: name }]])
    })
  })

  test('documents of one stack that delete the same rows wait for each other, and neither is a deadlock', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `${name}-${index}`)
    for (let round = 1; round <= 5; round += 1) {
      await there.apply(
        names.map((each) => scim(each)),
        undefined,
        own(),
      )
      const all = deleting(19)
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
