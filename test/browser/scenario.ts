import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { expect } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { registerProcess } from '../../src/db/presence.ts'
import { withLogin } from '../../src/db/roles.ts'
import { uuid7 } from '../../src/ids.ts'
import { selfSigned } from '../../src/models/self-signed.ts'
import { runFormat } from '../../src/runs/format.ts'
import { type Answer, applyPath } from '../support/asker.ts'
import { atEnd } from '../support/at-end.ts'
import { breakable } from '../support/breakable.ts'
import { example, type Installation, installation, named, type QueueKind, rows, sql, until } from '../support/kit.ts'
import type { Made } from '../support/make.ts'
import { operatorOf, runOf } from '../support/operations.ts'
import { logins } from '../support/template.ts'

/** A night of an installation: what an operator is asked about is made through its API, and known here. */

export type Scenario = {
  readonly service: Installation
  /** Who is asked. */
  readonly operator: Made
  readonly facts: Facts
  /** Another operator does it, on the dashboard. */
  pause(): Promise<unknown>
  resume(): Promise<unknown>
  /** A session of another program locks a row that a run is to change. */
  holdUp(): Promise<HeldUp>
}

type HeldUp = { readonly title: string; readonly pid: number; readonly program: string; release(): Promise<void> }

type Failure = { readonly slug: string; readonly who: string; readonly owner: string; readonly isRepaired: boolean }
type Refused = { readonly status: number; readonly code: string; readonly who: string }
type Expiring = { readonly name: string; readonly days: number }
/** @property fields those that changed, from -> to */
type Change = { readonly what: string; readonly who: string; readonly fields: readonly string[] }

export type Facts = {
  /** The newest first. */
  readonly failures: readonly Failure[]
  readonly cause: string
  readonly outcomes: Readonly<Record<'failed' | 'cancelled' | 'refused', number>>
  readonly refused: readonly Refused[]
  readonly raced: { readonly slug: string; readonly who: string }
  /** Changes since yesterday, the newest first. */
  readonly changed: { readonly slug: string; readonly changes: readonly Change[] }
  readonly deleted: { readonly slug: string; readonly who: string }
  readonly pause: { readonly who: string; readonly reason: string }
  readonly workers: { readonly working: string; readonly silent: string; readonly silentHost: string }
  readonly tokens: readonly Expiring[]
  readonly certificates: readonly Expiring[]
  /** The last one itself, the first one by its provider. */
  readonly outside: readonly string[]
  readonly erased: string
}

const cause = 'index "providers_name" contains unexpected zero page'
const days = (count: number) => new Date(Date.now() + count * 86_400_000 + 3_600_000)

const permissions = [
  ...['view_queue', 'view_run', 'view_audit', 'view_user', 'view_token'],
  ...['view_application', 'view_radiusprovider', 'view_certificatekeypair'],
]

export async function openScenario(queue: QueueKind): Promise<Scenario> {
  const service = await installation({ queue, applyWaitMs: 4_000 })
  const cast = await castOf(service)
  await before(service, cast)
  const changed = await changes(cast)
  const failures = await failing(service, cast)
  const refused = await refusedBeforeTheQueue(service, cast)
  const raced = await race(service, cast)
  await cancelled(service, cast, 3)
  const { pause, resume, ...paused } = await pauses(service)
  const { tokens, certificates } = await expiring(service)
  const facts: Facts = {
    ...{ failures, cause, refused, raced, ...changed, pause: paused, tokens, certificates },
    outcomes: { failed: failures.length, cancelled: 3, refused: 1 },
    workers: await workers(service),
    ...(await bySql(service)),
  }
  const operator = await service.make.user({ permissions })
  return { service, operator, facts, pause, resume, holdUp: () => holdUp(service, cast) }
}

type Person = Made & { readonly username: string }
type Cast = Readonly<Record<'alice' | 'bob' | 'carol', Person>>

async function castOf(service: Installation): Promise<Cast> {
  const person = async (username: string, superuser: boolean) => {
    const made = await service.make.user({ superuser })
    await service.db.user.update({ where: { pk: made.pk }, data: { username } })
    return { ...made, username }
  }
  return { alice: await person('alice', true), bob: await person('bob', true), carol: await person('carol', false) }
}

const owners: Readonly<Record<string, string>> = { alice: 'team-shop', bob: 'team-mail', carol: 'team-mail' }

type Sent = { readonly app?: Record<string, unknown>; readonly owner?: string; readonly headers?: object }

async function send(by: Person, slug: string, { app = {}, owner, headers = {} }: Sent = {}): Promise<Answer> {
  const label = owner ?? owners[by.username] ?? ''
  const body = await named('radius', slug, { app })
  return by.put(applyPath, body, { headers: { 'gatewright-owner': label, ...headers } })
}

async function put(by: Person, slug: string, sent: Sent = {}, status = 200): Promise<Answer> {
  const answer = await send(by, slug, sent)
  expect(answer.status, `${slug}: ${answer.text}`).toBe(status)
  return answer
}

/** Three days ago: nothing of it is an answer to a question about the last hour, or since yesterday. */
async function before(service: Installation, { alice, bob }: Cast): Promise<void> {
  const { db } = service
  await put(alice, 'store', { app: { group: 'Sales' } })
  await put(alice, 'gone')
  for (const slug of ['wiki', 'drive', 'vpn', 'fax']) await put(bob, slug)
  await put(bob, 'raced')
  await rows(
    db,
    sql`UPDATE runs SET created_at = created_at - interval '3 days', finished_at = finished_at - interval '3 days'`,
  )
  await rows(db, sql`UPDATE audit_rows SET at = at - interval '3 days'`)
}

/** Unchanged, changed, changed by a set, renamed; and another one is deleted. */
async function changes({ alice, bob }: Cast): Promise<Pick<Facts, 'changed' | 'deleted'>> {
  await put(alice, 'store', { app: { group: 'Sales' } })
  await put(alice, 'store', { app: { group: 'Shops' } })
  const set = [await named('radius', 'store', { app: { group: 'Retail' } }), await named('radius', 'till')]
  const sent = await bob.put('/api/v3/blueprints/', set, { headers: { 'gatewright-owner': 'team-shop' } })
  expect(sent.status, sent.text).toBe(200)
  const renamed = await named('radius', 'store', { app: { slug: 'shop', was: 'store', group: 'Retail' } })
  const answer = await alice.put(applyPath, renamed, { headers: { 'gatewright-owner': 'team-shop' } })
  expect(answer.status, answer.text).toBe(200)
  const headers = { 'gatewright-owner': 'team-shop' }
  const deleted = await alice.send({ method: 'DELETE', url: '/api/v3/core/applications/gone/', headers })
  expect(deleted.status, deleted.text).toBe(204)
  return {
    changed: {
      slug: 'shop',
      changes: [
        { what: 'application shop, was store', who: 'alice', fields: ['slug: store -> shop'] },
        { what: 'application store', who: 'bob', fields: ['group: Shops -> Retail'] },
        { what: 'application store', who: 'alice', fields: ['group: Sales -> Shops'] },
      ],
    },
    deleted: { slug: 'gone', who: 'alice' },
  }
}

/** Three failures, of which the first is repaired by a later run. */
async function failing(service: Installation, { alice, bob }: Cast): Promise<readonly Failure[]> {
  const { breaks, heals } = await breakable(service.db)
  const broken = [
    { slug: 'pay', by: alice },
    { slug: 'mail', by: bob },
    { slug: 'chat', by: bob },
  ]
  for (const { slug, by } of broken) {
    await breaks(slug, 'XX002', cause)
    await put(by, slug, {}, 500)
  }
  await heals('pay')
  await put(alice, 'pay')
  return broken
    .map(({ slug, by: { username: who } }) => ({ slug, who, owner: owners[who] ?? '', isRepaired: slug === 'pay' }))
    .reverse()
}

async function refusedBeforeTheQueue(service: Installation, { alice, bob, carol }: Cast): Promise<readonly Refused[]> {
  const sent = [
    { by: alice, answer: await put(alice, 'no slug', {}, 400) },
    { by: carol, answer: await put(carol, 'post', {}, 403) },
    { by: bob, answer: await put(bob, 'shop', {}, 409) },
    { by: bob, answer: await put(bob, 'wiki', { headers: { 'if-none-match': '*' } }, 412) },
  ]
  await until('the refusals to be recorded', async () => (await service.db.refusal.count()) === sent.length)
  return sent.map(({ by, answer: { status, json } }) => ({
    ...{ status, who: by.username },
    code: (json as { code: string }).code,
  }))
}

/** A plan is shown and accepted; before a worker applies it, another deletes the application. */
async function race(service: Installation, { alice, bob }: Cast): Promise<Facts['raced']> {
  const body = await named('radius', 'raced', { app: { group: 'Reviewed' } })
  const headers = { 'gatewright-owner': 'team-mail' }
  const plan = await bob.put(`${applyPath}?dry_run=true`, body, { headers })
  expect(plan.status, plan.text).toBe(200)
  const release = service.hold()
  try {
    const reviewed = { 'if-match': plan.headers.etag ?? '', prefer: 'respond-async' }
    const answer = await bob.put(applyPath, body, { headers: { ...headers, ...reviewed } })
    expect(answer.status, answer.text).toBe(202)
    const deleted = await alice.send({ method: 'DELETE', url: '/api/v3/core/applications/raced/', headers })
    expect(deleted.status, deleted.text).toBe(204)
  } finally {
    release()
  }
  await service.queued(0)
  return { slug: 'raced', who: 'bob' }
}

/** No worker begins them while their submitters wait. */
async function cancelled(service: Installation, { bob }: Cast, count: number): Promise<void> {
  const release = service.hold()
  try {
    const slugs = Array.from({ length: count }, (_, each) => `late-${each}`)
    await Promise.all(slugs.map((slug) => put(bob, slug, {}, 503)))
  } finally {
    release()
  }
}

async function pauses(service: Installation) {
  const { username: who, act } = await operatorOf(service)
  const reason = 'new disks for the queue'
  const pause = () => act('pause', reason)
  const resume = () => act('resume')
  await pause()
  await resume()
  return { who, reason, pause, resume }
}

/** Two that stop within a week, and two later ones. */
async function expiring(service: Installation): Promise<Pick<Facts, 'tokens' | 'certificates'>> {
  const { admin, db, make } = service
  const { pk } = await make.user()
  const tokens = [
    { name: 'nightly-deploy', days: 3 },
    { name: 'monthly-report', days: 12 },
  ]
  for (const { name, days: left } of tokens) await make.token(pk, { identifier: name, expires: days(left) })
  const certificates = [
    { name: 'saml-signing', days: 5 },
    { name: 'saml-signing-next', days: 11 },
  ]
  for (const { name, days: left } of certificates) {
    const notBefore = days(left)
    notBefore.setUTCFullYear(notBefore.getUTCFullYear() - 10)
    const { certificate, key } = await selfSigned(name, notBefore)
    const entry = {
      model: 'service_crypto.certificatekeypair',
      identifiers: { name },
      attrs: { certificate_data: certificate, key_data: key },
    }
    const made = await admin.put('/api/v3/blueprints/', { version: 1, metadata: { name }, entries: [entry] })
    expect(made.status, made.text).toBe(200)
    const { pk: signing } = await db.certificateKeyPair.findFirstOrThrow({ where: { name } })
    const saml = await example('saml', { app: { slug: name }, provider: { name, signing_kp: signing } })
    const used = await admin.put(applyPath, saml)
    expect(used.status, used.text).toBe(200)
  }
  return { tokens, certificates }
}

/** One that works, and one of an earlier version that was last heard a minute ago. */
async function workers({ db }: Installation): Promise<Facts['workers']> {
  const worker = registerProcess(db, 'workers', runFormat, { slots: () => 4, busy: () => 0, hasTaken: () => false })
  atEnd(() => worker.stop())
  const [silent, silentHost] = ['0.1.9', 'worker-b.example']
  await rows(
    db,
    sql`INSERT INTO workers (id, host, process_id, version, format, slots, seen_at)
      VALUES (${uuid7()}::uuid, ${silentHost}, 7, ${silent}, 3, 8, now() - interval '1 minute')`,
  )
  return { working: manifest.version, silent, silentHost }
}

/** Past the service: an application, the provider of another one, and a third one that is deleted. */
async function bySql({ db }: Installation): Promise<Pick<Facts, 'outside' | 'erased'>> {
  await db.application.updateMany({ where: { slug: 'wiki' }, data: { metaDescription: 'by SQL' } })
  await rows(db, sql`UPDATE providers SET settings = settings || '{"mfa_support": false}' WHERE name = 'drive'`)
  await rows(db, sql`DELETE FROM applications WHERE slug = 'fax'`)
  return { outside: ['drive', 'wiki'], erased: 'fax' }
}

async function holdUp(service: Installation, { bob }: Cast): Promise<HeldUp> {
  const program = 'nightly-report'
  const client = new pg.Client({
    connectionString: withLogin(service.url, logins.service),
    application_name: program,
  })
  await client.connect()
  await client.query("BEGIN; SELECT pk FROM applications WHERE slug = 'vpn' FOR UPDATE")
  const { rows: found } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  await put(bob, 'vpn', { app: { group: randomUUID() }, headers: { prefer: 'respond-async' } }, 202)
  const { title } = await runOf(service, 'vpn')
  const release = async () => {
    await client.end()
    await service.queued(0)
  }
  return { title, program, pid: found[0]?.pid ?? 0, release }
}
