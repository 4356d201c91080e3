import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { deleteOldChanges } from '../../../src/runs/retention.ts'
import {
  type Asker,
  aFlow,
  anApplication,
  aProvider,
  applied,
  applyPath,
  execute,
  installation,
  name,
  named,
  rows,
  sql,
  until,
} from '../../support/kit.ts'

/** Servers that sign users in follow the configurations of a kind. */

const there = await installation({ waits: { everyMs: 50, consumersOfUser: 2, consumersOfProcess: 3 } })
const path = '/api/v3/consumers/oauth2/'

type Page = {
  revision: string
  reset: boolean
  results: { pk: number; name: string; owner: string | null; [field: string]: unknown }[]
  deleted: { pk: number }[]
  next: number
}
const read = async (query = '', as: Asker = there.admin) => {
  const { status, json, headers, errors } = await as.get(`${path}${query}`)
  return { status, headers, errors, page: json as Page }
}
const since = (revision: string, seconds = 0) => `?since=${encodeURIComponent(revision)}&wait=${seconds}`
const revisionNow = async (as?: Asker) => (await read('?page_size=1', as)).page.revision
/** A revision that names no open transaction: those of the worker end a moment after the answer. */
async function quietRevision(): Promise<string> {
  let revision = ''
  await until('no open transaction', async () => {
    revision = await revisionNow()
    return /^(\d+):\1:~/.test(revision)
  })
  return revision
}
const changed = (revision: string, as?: Asker) => read(since(revision), as).then(({ page }) => page)
const isSame = async (revision: string, as?: Asker) => (await read(since(revision), as)).status === 204

const put = async (of: string, provider: Record<string, unknown> = {}, headers = {}) =>
  applied(there.admin.put(applyPath, await named('oauth2', of, { provider }), headers))
const pkOf = async (of: string) => (await there.db.provider.findUniqueOrThrow({ where: { name: of } })).pk
const waiting = (count: number) =>
  until(`${count} waits`, async () => {
    const { text } = await there.admin.get('/-/metrics/')
    return text.includes(`gatewright_waits{kind="consumers"} ${count}\n`)
  })

test('the whole comes first, then what changed, then nothing', async () => {
  await put(name, { client_secret: `secret-of-${name}` })
  await quietRevision()
  const { page: whole } = await read()
  expect(whole).toMatchObject({ reset: true, deleted: [], next: 0 })
  const one = whole.results.find((each) => each.name === name)
  expect(one?.client_secret).toEqual([{ value: `secret-of-${name}`, until: null }])
  const { status, headers } = await read(since(whole.revision))
  expect([status, headers['gatewright-revision'], headers['cache-control']]).toEqual([204, whole.revision, 'no-store'])
  await put(`${name}-2`)
  const page = await changed(whole.revision)
  expect(page).toMatchObject({ reset: false, deleted: [], next: 0, results: [{ name: `${name}-2` }] })
  expect(await isSame(page.revision)).toBe(true)
  // A run that changes nothing changes no revision.
  const before = await quietRevision()
  await put(`${name}-2`)
  expect(await quietRevision()).toBe(before)
})

describe('what counts as a change', () => {
  const changes = async (work: () => Promise<unknown>) => {
    const revision = await revisionNow()
    await work()
    return changed(revision)
  }
  const one = { results: [{ name: expect.any(String) }], deleted: [], reset: false }

  test('the application, by the API or past it', async () => {
    await put(name)
    const renamed = () => there.admin.apply([anApplication(name, { name: 'Renamed' })])
    expect(await changes(renamed)).toMatchObject({ ...one, results: [{ name, application: { name: 'Renamed' } }] })
    const past = () => execute(there.db, sql`UPDATE applications SET group_name = 'Past' WHERE slug = ${name}`)
    expect(await changes(past)).toMatchObject({ ...one, results: [{ name, application: { group: 'Past' } }] })
    const gone = () => there.admin.delete(`/api/v3/core/applications/${name}/`)
    const page = await changes(gone)
    expect(page.results.map((each) => each.application)).toEqual(page.results.map(() => null))
    expect(page.results.length + page.deleted.length).toBe(1)
  })

  test('a flow, a property mapping and a key pair to which providers refer', async () => {
    const flow = aFlow(`flow-${name}`, { name: 'Consent', title: '', designation: 'authorization' })
    await applied(there.admin.apply([flow]))
    await put(name, { authorization_flow: `flow-${name}` })
    const asks = () => applied(there.admin.apply([aFlow(`flow-${name}`, { asks_for_consent: true })]))
    expect(await changes(asks)).toMatchObject({
      ...one,
      results: [{ name, authorization_flow: { slug: `flow-${name}`, asks_for_consent: true } }],
    })
    const titled = () => execute(there.db, sql`UPDATE flows SET title = title WHERE slug = ${`flow-${name}`}`)
    expect(await changes(titled)).toBeUndefined()
    const mapping = await rows<{ provider_pk: number }>(
      there.db,
      sql`SELECT DISTINCT provider_pk FROM provider_references WHERE property_mapping_pk IS NOT NULL`,
    )
    const expressed = () =>
      execute(
        there.db,
        sql`UPDATE property_mappings SET expression = expression || ' ' WHERE pk IN (
        SELECT property_mapping_pk FROM provider_references)`,
      )
    const page = mapping.length === 0 ? undefined : await changes(expressed)
    expect(page?.results.map(({ pk }) => pk) ?? []).toEqual(
      mapping.map(({ provider_pk }) => provider_pk).sort((a, b) => a - b),
    )
  })

  test('not what stays as it is, nor another kind', async () => {
    await put(name)
    expect(await changes(() => execute(there.db, sql`UPDATE providers SET name = name`))).toBeUndefined()
    expect(await changes(() => there.admin.submit('radius', `radius-${name}`))).toBeUndefined()
  })

  test('one behind very many of another kind', async () => {
    const kind = '/api/v3/consumers/radius/'
    await applied(there.admin.submit('radius', `radius-${name}`))
    const pk = await pkOf(`radius-${name}`)
    const { json } = await there.admin.get(kind)
    await execute(
      there.db,
      sql`INSERT INTO providers (uuid, kind, name, oauth2_client_id)
      SELECT gen_random_uuid(), 'oauth2', ${`many-${name}`} || n, ${`many-${name}`} || n FROM generate_series(1, 1500) n`,
    )
    await execute(there.db, sql`DELETE FROM providers WHERE pk = ${pk}`)
    const { json: next } = await there.admin.get(`${kind}${since(Object(json).revision)}`)
    expect(next).toMatchObject({ reset: false, results: [], deleted: [{ pk }] })
    await execute(there.db, sql`DELETE FROM providers WHERE name LIKE ${`many-${name}%`}`)
  })

  test('another provider of an application in the backchannel, by SQL', async () => {
    const url = 'https://scim.example'
    const ofScim = ['a', 'b'].map((each) => aProvider('scim', `${name}-${each}`, { url, token: 'x' }))
    await applied(there.admin.apply([...ofScim, anApplication(name, { name, backchannel_providers: [`${name}-a`] })]))
    const { json } = await there.admin.get('/api/v3/consumers/scim/')
    const [a, b] = [await pkOf(`${name}-a`), await pkOf(`${name}-b`)]
    await execute(there.db, sql`UPDATE backchannel_providers SET provider_pk = ${b} WHERE provider_pk = ${a}`)
    const { json: next } = await there.admin.get(`/api/v3/consumers/scim/${since(Object(json).revision)}`)
    expect(Object(next).results).toMatchObject([
      { pk: a, backchannel_application: null },
      { pk: b, backchannel_application: { slug: name } },
    ])
  })

  test('a deletion, by key', async () => {
    await put(name)
    const pk = await pkOf(name)
    const gone = () => execute(there.db, sql`DELETE FROM providers WHERE name = ${name}`)
    expect(await changes(gone)).toMatchObject({ results: [], deleted: [{ pk }], reset: false })
  })
})

test('a transaction that began earlier and commits later is read, too', async () => {
  const [early, late] = [`early-${name}`, `late-${name}`]
  await put(early)
  await put(late)
  const commit = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const open = there.db.$transaction(
    async (tx) => {
      await execute(
        tx,
        sql`UPDATE providers SET settings = settings || '{"sub_mode": "user_email"}' WHERE name = ${early}`,
      )
      begun.resolve()
      await commit.promise
    },
    { timeout: 20_000 },
  )
  await begun.promise
  const revision = await revisionNow()
  await put(late, { client_id: `id-${late}` })
  const page = await changed(revision)
  expect(page.results).toMatchObject([{ name: late }])
  commit.resolve()
  await open
  const next = await changed(page.revision)
  expect(next.results).toMatchObject([{ name: early }])
  expect(await isSame(next.revision)).toBe(true)
})

describe('a wait', () => {
  test('ends with a change, and not with one that does not concern the caller', async () => {
    const revision = await revisionNow()
    const answer = read(since(revision, 30))
    await waiting(1)
    await there.admin.submit('radius', name)
    await put(`${name}-2`)
    const { status, page } = await answer
    expect([status, page.results.map((each) => each.name)]).toEqual([200, [`${name}-2`]])
    await waiting(0)
  })

  test('ends after its time, and HEAD does not wait', async () => {
    const revision = await revisionNow()
    expect((await read(since(revision, 1))).status).toBe(204)
    const { status } = await there.admin.send({ method: 'HEAD', url: `${path}${since(revision, 30)}` })
    expect(status).toBe(204)
  })

  test('ends when its token is deleted or its user is not active any more (401), or has lost the right (403)', async () => {
    const view = ['view_oauth2provider']
    for (const [status, lose] of [
      [401, (pk: number) => execute(there.db, sql`DELETE FROM tokens WHERE user_pk = ${pk}`)],
      [401, (pk: number) => execute(there.db, sql`UPDATE users SET is_active = false WHERE pk = ${pk}`)],
      [403, (pk: number) => execute(there.db, sql`DELETE FROM memberships WHERE user_pk = ${pk}`)],
    ] as const) {
      const user = await there.make.user({ permissions: view })
      const answer = read(since(await revisionNow(user), 30), user)
      await waiting(1)
      await lose(user.pk)
      expect((await answer).status).toBe(status)
      await waiting(0)
    }
  })

  test('is limited for each user, and for all', async () => {
    const [one, other] = [await there.make.user({ superuser: true }), await there.make.user({ superuser: true })]
    const revision = await revisionNow(one)
    const waits = [one, one, other].map((as) => read(since(revision, 30), as))
    await waiting(3)
    expect((await read(since(revision, 30), other)).status).toBe(503)
    await put(name)
    expect((await Promise.all(waits)).map(({ status }) => status)).toEqual([200, 200, 200])
    const again = await revisionNow(one)
    const two = [one, one].map((as) => read(since(again, 30), as))
    await waiting(2)
    expect((await read(since(again, 30), one)).status).toBe(429)
    await put(name, { client_id: `id-${name}` })
    await Promise.all(two)
  })
})

describe('a caller whose rights are bound to an owner', () => {
  test('reads its own, and forgets what another owner gets', async () => {
    const [ours, theirs] = [`ours-${name}`, `theirs-${name}`]
    const reader = await there.make.user({ permissions: ['view_oauth2provider'], owners: [ours] })
    await put(`${name}-a`, {}, { owner: ours })
    await put(`${name}-b`, {}, { owner: theirs })
    const { page } = await read('', reader)
    expect(page.results).toMatchObject([{ name: `${name}-a`, owner: ours, client_secret: null }])
    await put(`${name}-c`, {}, { owner: theirs })
    expect(await isSame(page.revision, reader)).toBe(true)
    await execute(there.db, sql`UPDATE providers SET owner = ${theirs} WHERE name = ${`${name}-a`}`)
    const moved = await changed(page.revision, reader)
    expect(moved).toMatchObject({ reset: false, results: [], deleted: [{ pk: await pkOf(`${name}-a`) }] })
    await execute(there.db, sql`UPDATE providers SET owner = ${ours} WHERE name = ${`${name}-c`}`)
    expect(await changed(moved.revision, reader)).toMatchObject({ results: [{ name: `${name}-c` }], deleted: [] })
  })
})

describe('all is read anew', () => {
  const isReset = async (revision: string, as?: Asker) => (await changed(revision, as)).reset

  test('with other rights', async () => {
    await put(name)
    const user = await there.make.user({ permissions: ['view_oauth2provider'] })
    const revision = await revisionNow(user)
    expect(await isSame(revision, user)).toBe(true)
    const { pk } = await there.make.role(['read_oauth2provider_secrets'])
    const { groupPk } = await there.db.membership.findFirstOrThrow({ where: { userPk: user.pk } })
    await there.db.groupRole.create({ data: { groupPk, rolePk: pk } })
    const page = await changed(revision, user)
    expect(page.reset).toBe(true)
    expect(page.results.find((each) => each.name === name)?.client_secret).toEqual([
      expect.objectContaining({ until: null }),
    ])
    expect(await isReset(await revisionNow(), user)).toBe(true)
  })

  test('after more changes than one answer holds', async () => {
    const revision = await revisionNow()
    const many = `many-${name}`
    await execute(
      there.db,
      sql`INSERT INTO providers (uuid, kind, name, oauth2_client_id)
      SELECT gen_random_uuid(), 'oauth2', ${many} || n, ${many} || n FROM generate_series(1, 1001) n`,
    )
    const page = await changed(revision)
    expect([page.reset, page.results.length, page.next > 0]).toEqual([true, 100, true])
    const gone = await revisionNow()
    await execute(there.db, sql`DELETE FROM providers WHERE name LIKE ${`${many}%`}`)
    expect(await isReset(gone)).toBe(true)
  })

  test('after changes that were deleted, which are those of more than eight days', async () => {
    await put(name)
    const [before] = [await revisionNow()]
    await put(name, { client_id: `id-${name}` })
    expect(await deleteOldChanges(there.db)).toBe(0)
    await execute(there.db, sql`UPDATE consumer_changes SET at = now() - interval '9 days'`)
    const revision = await quietRevision()
    expect(await deleteOldChanges(there.db)).toBeGreaterThan(0)
    expect(await isReset(before)).toBe(true)
    // The newest revision knows all of them.
    expect([await isSame(revision), await revisionNow()]).toEqual([true, revision])
  })

  test('after a change to which very many refer, and after TRUNCATE', async () => {
    await applied(there.admin.apply([aFlow(`flow-${name}`, { name: 'Used', title: '', designation: 'authorization' })]))
    const { pk } = await there.db.flow.findUniqueOrThrow({ where: { slug: `flow-${name}` } })
    await execute(
      there.db,
      sql`INSERT INTO providers (uuid, kind, name, oauth2_client_id, authorization_flow)
      SELECT gen_random_uuid(), 'oauth2', ${name} || n, ${name} || n, ${pk}::uuid FROM generate_series(1, 1001) n`,
    )
    const revision = await revisionNow()
    await execute(there.db, sql`UPDATE flows SET title = 'Other' WHERE pk = ${pk}::uuid`)
    expect(await isReset(revision)).toBe(true)
    await execute(there.db, sql`DELETE FROM providers WHERE authorization_flow = ${pk}::uuid`)
    const before = await revisionNow()
    await execute(there.db, sql`TRUNCATE backchannel_providers`)
    expect(await isReset(before)).toBe(true)
  })

  test('in another database of the same PostgreSQL', async () => {
    const other = await installation()
    const { json } = await other.admin.get(path)
    expect(await isReset(Object(json).revision)).toBe(true)
  })

  test('and not because an old transaction is open', async () => {
    const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const work = async (tx: Pick<typeof there.db, '$executeRawUnsafe'>) => {
      await tx.$executeRawUnsafe('CREATE TEMPORARY TABLE old_one ()')
      begun.resolve()
      await end.promise
    }
    const open = there.db.$transaction(work, { timeout: 20_000 })
    await begun.promise
    await execute(there.db, sql`UPDATE installation SET changes_since = pg_current_xact_id()::text::bigint`)
    let revision = ''
    await until('no other transaction to be open', async () => {
      revision = await revisionNow()
      return /^(\d+):\d+:\1~/.test(revision)
    })
    expect(await isSame(revision)).toBe(true)
    await put(name)
    expect(await changed(revision)).toMatchObject({ reset: false, results: [{ name }] })
    end.resolve()
    await open
  })

  test('with a revision of a later time, or of another kind', async () => {
    const [digest] = (await revisionNow()).split('~').reverse()
    expect(await isReset(`900000000:900000000:~${digest}`)).toBe(true)
    const other = Object((await there.admin.get('/api/v3/consumers/saml/')).json).revision
    expect(await isReset(other)).toBe(true)
  })
})

test('pages go on behind a key', async () => {
  for (const each of ['a', 'b', 'c']) await put(`${name}-${each}`)
  const found: string[] = []
  let after = 0
  do {
    const { page } = await read(`?page_size=2&after=${after}`)
    expect(page.results.length).toBeLessThanOrEqual(2)
    found.push(...page.results.map((each) => each.name))
    after = page.next
  } while (after > 0)
  const all = await there.db.provider.findMany({ where: { kind: 'oauth2' }, orderBy: { pk: 'asc' } })
  expect(found).toEqual(all.map((each) => each.name))
})

test('an answer that the client has is a 304', async () => {
  await put(name)
  await quietRevision()
  const { headers } = await read(`?name=${name}`)
  const { status } = await there.admin.get(`${path}?name=${name}`, { ifNoneMatch: headers.etag ?? '' })
  expect(status).toBe(304)
  await put(name, { client_id: `id-${name}` })
  expect((await there.admin.get(`${path}?name=${name}`, { ifNoneMatch: headers.etag ?? '' })).status).toBe(200)
})

test.each([
  ['?since=x', 'invalid_value'],
  ['?wait=31', 'invalid_value'],
  ['?after=-1', 'invalid_value'],
  ['?page_size=1001', 'invalid_value'],
  ['?since=1:1:~aaaaaaaaaaa&name=x', 'invalid_combination'],
  ['?since=1:1:~aaaaaaaaaaa&after=3', 'invalid_combination'],
  ['?base_dn=x', 'unknown_parameter'],
])('%s is refused', async (query) => {
  const { status, errors } = await read(query)
  expect([status, errors.length]).toEqual([400, 1])
})

test('a read is recorded, with one audit row a day and consumer', async () => {
  const user = await there.make.user({ permissions: ['view_oauth2provider'] })
  const audited = () => there.db.auditRow.findMany({ where: { actorPk: user.pk } })
  const revision = await revisionNow(user)
  await read(since(revision), user)
  expect(await audited()).toMatchObject([
    { action: 'read_configurations', changes: [{ model: 'consumer', key: 'oauth2', action: 'read' }] },
  ])
  const [consumer] = await there.db.consumer.findMany({ where: { userPk: user.pk } })
  expect(consumer).toMatchObject({ kind: 'oauth2', revision: revision.split('~')[0], reads: 2 })
  await execute(
    there.db,
    sql`UPDATE consumers SET day = day - 1, seen_at = now() - interval '1 day' WHERE user_pk = ${user.pk}`,
  )
  await read('', user)
  expect(await audited()).toHaveLength(2)
})

test.each([
  ['oauth2', 'client_id'],
  ['saml', 'issuer'],
  ['ldap', 'base_dn'],
  ['proxy', 'external_host'],
] as const)('a provider of %s is found by %s in one request', async (kind, key) => {
  await applied(there.admin.submit(kind, name))
  const of = `/api/v3/consumers/${kind}/`
  const { json } = await there.admin.get(`${of}?name=${name}`)
  const [found] = (json as Page).results
  const { json: byKey } = await there.admin.get(`${of}?${key}=${encodeURIComponent(String(found?.[key]))}`)
  expect((byKey as Page).results).toContainEqual(found)
  expect((await there.admin.get(`${of}?${key}=other`)).json).toMatchObject({ results: [], reset: true, next: 0 })
})

test('after a restore on a server with fewer transactions, as the page says: a wait lasts, and no change is missed', async () => {
  await put(name)
  const later = sql`pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000`
  await execute(there.db, sql`INSERT INTO consumer_changes (changed_in, kind) VALUES (${later}, 'oauth2')`)
  await execute(there.db, sql`UPDATE installation SET changes_since = ${later}`)
  const page = readFileSync('docs/recovery.md', 'utf8')
  const [, commands = ''] = /```sql\n( *UPDATE runs SET changed_in[^`]*)```/.exec(page) ?? []
  for (const each of commands.split(';').filter((text) => text.trim() !== '')) await there.db.$executeRawUnsafe(each)
  const revision = await quietRevision()
  expect(await isSame(revision)).toBe(true)
  await put(name, { client_id: `restored-${name}` })
  expect(await changed(revision)).toMatchObject({ reset: false, results: [{ name }] })
})
