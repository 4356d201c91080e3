import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { breakable } from '../support/breakable.ts'
import { type Asker, answered, dashboardOf, installation, named, until } from '../support/kit.ts'

/** Why a run failed, who sees it, and whether it fails still. */

const there = await installation()
const { breaks, heals } = await breakable(there.db)

type Run = {
  readonly id: string
  readonly state: string
  readonly cause: string | null
  readonly repaired: boolean | null
  readonly repaired_by: string | null
  readonly logs: readonly string[]
  readonly failed_attempts?: readonly { attempt: number; at: string; cause: string }[]
}

const name = () => `c-${randomUUID().slice(0, 8)}`
const runOf = async (of: string) => {
  const { id } = await there.db.run.findFirstOrThrow({ where: { slug: of }, orderBy: { createdAt: 'asc' } })
  return id
}
const read = async (id: string, who: Asker = there.admin) =>
  (await who.get(`/api/v3/blueprints/runs/${id}/?include_blueprint=false`)).json as Run
const listed = async (id: string, who: Asker = there.admin) => {
  const { json } = await who.get('/api/v3/blueprints/runs/?page_size=100')
  return (json as { results: Run[] }).results.find((run) => run.id === id)
}

describe('a failed run', () => {
  test('keeps its cause, with the SQLSTATE, for those who may see all runs', async () => {
    const of = name()
    await breaks(of, 'XX002', `index "providers_name" is corrupt, or so ${'it seems '.repeat(50)}`)
    const submitter = await there.make.user({
      permissions: ['add_application', 'add_ldapprovider', 'change_application', 'change_ldapprovider', 'view_flow'],
    })
    expect((await submitter.submit('ldap', of)).status).toBe(500)
    const id = await runOf(of)
    const run = await read(id)
    expect(run).toMatchObject({
      state: 'failed',
      repaired_by: null,
      failed_attempts: [{ attempt: 1, cause: run.cause }],
    })
    expect(run.cause).toMatch(/^index "providers_name" is corrupt, or so it seems .* \(SQLSTATE XX002\)$/)
    expect(run.cause?.length).toBe(300)
    expect((await listed(id))?.cause).toBe(run.cause)
    // Its submitter sees that it failed, and not how the database is made.
    const shown = [await read(id, submitter), await listed(id, submitter)]
    expect(shown).toMatchObject([{ cause: null, failed_attempts: [] }, { cause: null }])
    expect(JSON.stringify(shown)).not.toContain('corrupt')
    expect((await read(id, await there.make.user({ permissions: ['view_run'] }))).cause).toBe(run.cause)
  })

  test('is repaired by the next run that applies the same application', async () => {
    const of = name()
    await breaks(of, 'XX002', 'a broken index')
    await there.admin.submit('ldap', of)
    await there.admin.submit('ldap', of)
    const failed = await there.db.run.findMany({ where: { slug: of }, orderBy: { createdAt: 'asc' } })
    expect(failed).toHaveLength(2)
    const ids = failed.map(({ id }) => id)
    // Another failure, a plan and another application repair nothing.
    await there.admin.submit('ldap', name())
    for (const id of ids) expect((await read(id)).repaired_by).toBeNull()
    await heals(of)
    await there.admin.submit('ldap', of, { query: 'dry_run=true' })
    for (const id of ids) expect((await read(id)).repaired_by).toBeNull()
    expect((await there.admin.submit('ldap', of)).status).toBe(200)
    await there.admin.submit('ldap', of, { app: { group: 'Later' } })
    const [, , , repairing] = await there.db.run.findMany({ where: { slug: of }, orderBy: { createdAt: 'asc' } })
    for (const id of ids) expect((await read(id)).repaired_by).toBe(repairing?.id)
    expect((await listed(ids[0] ?? ''))?.repaired_by).toBe(repairing?.id)
    expect((await read(repairing?.id ?? '')).repaired_by).toBeNull()
  })

  test('is repaired for all who see it, and names the run for those who see that one', async () => {
    const of = name()
    const as = async (owner: string) => there.admin.submit('ldap', of, { owner })
    await breaks(of, 'XX002', 'a broken index')
    expect((await as('team-one')).status).toBe(500)
    const failed = await runOf(of)
    await heals(of)
    expect((await as('team-two')).status).toBe(200)
    const { id: by } = await there.db.run.findFirstOrThrow({ where: { slug: of, applied: true } })
    const permissions = ['view_application', 'view_run', 'view_queue']
    const viewerOf = (...owners: string[]) => there.make.user({ permissions, owners })
    const [one, both] = [await viewerOf('team-one'), await viewerOf('team-one', 'team-two')]
    const repair = async (who: Asker) =>
      [await read(failed, who), await listed(failed, who)].map((run) => [run?.repaired, run?.repaired_by])
    expect(await repair(one)).toEqual(Array(2).fill([true, null]))
    for (const who of [both, there.admin]) expect(await repair(who)).toEqual(Array(2).fill([true, by]))
    const { send, session } = dashboardOf(there)
    const pageOf = async (token: string, url: string) =>
      (await send({ method: 'GET', url, headers: { cookie: await session(token) } })).body
    const [run, all] = [await pageOf(one.token, `/admin/runs/${failed}/`), await pageOf(one.token, '/admin/runs/')]
    expect(run).toContain('Repaired by a later run.')
    expect(all).toMatch(new RegExp(`id="run-${failed}"[\\s\\S]*?repaired</span>`))
    expect([run, all].filter((page) => page.includes(by))).toEqual([])
    expect(await pageOf(both.token, `/admin/runs/${failed}/`)).toContain(`Repaired by <a href="/admin/runs/${by}/">`)
  })

  test('is repaired by a set that changes the application, and a set by the same set', async () => {
    const [one, two] = [name(), name()]
    await breaks(one, 'XX002', 'a broken index')
    await there.admin.submit('ldap', one)
    const set = [await named('ldap', one), await named('ldap', two)]
    const sets = () => there.admin.put('/api/v3/blueprints/', set)
    expect((await sets()).status).toBe(500)
    const { id: failedSet } = await there.db.run.findFirstOrThrow({ where: { state: 'failed', slug: null } })
    await heals(one)
    const answer = await answered(200, sets())
    const repairing = answer.runId
    expect((await read(await runOf(one))).repaired_by).toBe(repairing)
    expect((await read(failedSet)).repaired_by).toBe(repairing)
  })

  test('of a blueprint is repaired when its submitter applies one of this name, whatever it says', async () => {
    const of = name()
    await breaks(of, 'XX002', 'a broken index')
    const { provider_model: model, provider } = await named('ldap', of)
    const { name: _, ...attrs } = provider
    const submit = (title: string, more: object = {}) =>
      there.admin.put('/api/v3/blueprints/', {
        version: 1,
        metadata: { name: title },
        entries: [{ model, identifiers: { name: of }, attrs: { ...attrs, ...more } }],
      })
    expect((await submit(of)).status).toBe(500)
    const { id } = await there.db.run.findFirstOrThrow({ where: { title: `apply blueprint ${of}` } })
    await heals(of)
    expect((await submit(`${of} of another name`, { base_dn: 'dc=other' })).status).toBe(200)
    expect((await read(id)).repaired_by).toBeNull()
    const answer = await submit(of, { base_dn: 'dc=corrected' })
    expect(answer.headers['content-location']).toContain((await read(id)).repaired_by)
  })
})

test('each attempt that fails is recorded, and the run goes on', async () => {
  const of = name()
  // A lock that is not given in time.
  await breaks(of, '55P03', 'canceling statement due to lock timeout')
  const answering = there.admin.submit('ldap', of, { prefer: 'respond-async' })
  expect((await answering).status).toBe(202)
  const id = await runOf(of)
  const attempt = {
    attempt: 1,
    at: expect.any(String),
    cause: 'canceling statement due to lock timeout (SQLSTATE 55P03)',
  }
  await until('the attempt to be recorded', async () => ((await read(id)).failed_attempts ?? []).length > 0)
  await heals(of)
  await until('the next attempt', async () => (await read(id)).state === 'done', { withinMs: 60_000 })
  const run = await read(id)
  expect(run.failed_attempts?.[0]).toEqual(attempt)
  expect(run.cause).toBeNull()
  // Retention deletes them with their run.
  expect(await there.db.runAttempt.count({ where: { runId: id } })).toBe(run.failed_attempts?.length)
})
