import { expect, test } from 'vitest'
import { apply } from '../../src/apply/apply.ts'
import type { EngineTx } from '../../src/db/engine-tx.ts'
import type { Entry } from '../../src/document/document.ts'
import { Find, KeyOf } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { aGroup, aToken, aUser, name, versions } from '../support/kit.ts'
import { application, bench, oauth2 } from './engine.ts'

/** Rows that belong to users: a second apply of the same document changes nothing. */

const there = await bench()

const document = (): Partial<Entry>[] => [
  { ...aUser(name), id: 'user' },
  { ...application(name), id: 'app' },
  {
    model: 'service_stages_totp.totpdevice',
    id: 'device',
    identifiers: { user: new KeyOf('user'), name: 'Phone' },
    attrs: { digits: 8 },
  },
  {
    model: 'service_core.userconsent',
    identifiers: { user: new KeyOf('user'), application: new KeyOf('app') },
    attrs: { permissions: 'openid email', expires: '2030-01-31T12:00:00+02:00' },
  },
  {
    ...aToken(name, { user: new Find('service_core.user', { username: name }), expires: '2030-01-31T12:00:00.5Z' }),
    id: 'token',
  },
]

test('all are created, with defaults and generated values, and are unchanged the second time', async () => {
  const { logs, generated } = await there.apply(document())
  expect(logs.filter((line) => line.includes('created'))).toHaveLength(5)
  expect(Object.keys(generated)).toEqual(['device'])
  const user = await there.db.user.findUniqueOrThrow({
    where: { username: name },
    include: { totpDevices: true, consents: true, tokens: true },
  })
  expect(user.totpDevices).toMatchObject([{ name: 'Phone', digits: 8, step: 30, confirmed: true }])
  expect(user.totpDevices[0]?.sealedKey).not.toContain(generated.device?.key)
  expect(user.consents).toMatchObject([{ permissions: 'openid email', expires: new Date('2030-01-31T10:00:00Z') }])
  expect(user.tokens).toMatchObject([{ intent: 'api', expires: new Date('2030-01-31T12:00:00.5Z') }])
  const before = await versions(there.db)
  const again = await there.apply(document())
  expect(again.logs.every((line) => line.endsWith('unchanged'))).toBe(true)
  expect(again.audited).toEqual([])
  expect(await versions(there.db)).toEqual(before)
})

test('of two consents of a user, each is found by its application', async () => {
  await there.apply(document())
  const consent = {
    model: 'service_core.userconsent',
    identifiers: {
      user: new Find('service_core.user', { username: name }),
      application: new Find('service_core.application', { slug: `${name}-b` }),
    },
    attrs: { permissions: 'profile' },
  }
  await there.apply([application(`${name}-b`)])
  for (const done of ['created', 'unchanged']) expect((await there.apply([consent])).logs.join()).toContain(done)
  expect(await there.db.userConsent.count({ where: { user: { username: name } } })).toBe(2)
})

test('two devices of one user with the same name are an error', async () => {
  await there.apply(document())
  const user = await there.db.user.findUniqueOrThrow({ where: { username: name } })
  const { pk: _, uuid: __, ...device } = await there.db.totpDevice.findFirstOrThrow({ where: { userPk: user.pk } })
  await there.db.totpDevice.create({ data: { ...device, uuid: crypto.randomUUID() } })
  expect((await there.refusal(document())).logs).toEqual([
    expect.stringMatching(
      /^rolled back: entries\.2: The identifiers match more than one TOTP device: "Phone" \(pk \d+\) and "Phone" \(pk \d+\)\.$/,
    ),
  ])
})

/** An engine transaction that counts its statements. */
function counting(tx: EngineTx, sent: string[]): EngineTx {
  return {
    ...tx,
    query: (row, statement) => {
      sent.push(statement.text)
      return tx.query(row, statement)
    },
    send: (statement, explain) => {
      sent.push(statement.text)
      tx.send(statement, explain)
    },
  }
}

async function statements(
  entries: readonly Partial<Entry>[],
  { owner }: { owner: string | null } = unconditional,
): Promise<string[]> {
  const whole = entries.map((entry): Entry => ({ model: '', state: 'present', identifiers: {}, attrs: {}, ...entry }))
  const plan = compile({ version: 1, metadata: { name }, entries: whole }, there.engine.registry)
  const sent: string[] = []
  await there.transaction((tx) => apply(counting(tx, sent), there.engine, plan, system, { ...unconditional, owner }))
  return sent
}

test('rights are read only for models with a policy: an application and its provider take four statements', async () => {
  const entries = [{ ...oauth2(name), id: 'provider' }, application(name, { provider: new KeyOf('provider') })]
  expect(await statements(entries)).toHaveLength(4)
  const asked = await statements([aGroup(name, { users: [] })])
  expect(asked).toHaveLength(5)
})

test('an owner costs no statement', async () => {
  const entries = [{ ...oauth2(name), id: 'provider' }, application(name, { provider: new KeyOf('provider') })]
  expect(await statements(entries, { owner: 'team-a' })).toHaveLength(4)
  expect(await statements(entries, { owner: 'team-a' })).toHaveLength(2)
})
