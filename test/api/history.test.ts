import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Answer, type Asker, answered } from '../support/asker.ts'
import { execute, installation, named, rows, name as slug, sql } from '../support/kit.ts'

/** What changed an object, and who did it: GET /core/applications/{slug}/history/ and runs by `object`. */

const there = await installation()

type Entry = {
  readonly action: string
  readonly model: string
  readonly name: string
  readonly was: string | null
  readonly owner: string | null
  readonly fields: Readonly<Record<string, unknown>> | null
  readonly user: { readonly username: string } | null
  readonly run: string | null
  readonly request_id: string
}

const application = 'service_core.application'
const provider = 'service_providers_oauth2.oauth2provider'
const runsOf = async (object: string, who: Asker = there.admin) => {
  const { json } = await who.get(`/api/v3/blueprints/runs/?object=${encodeURIComponent(object)}`)
  return (json as { results: { id: string; mode: string }[] }).results.map(({ id }) => id)
}
const part = (path: string, who: Asker = there.admin) => who.get(path)
const historyPath = (of = slug, query = '') => `/api/v3/core/applications/${of}/history/${query}`
const history = async (of = slug, who: Asker = there.admin): Promise<Entry[]> => {
  const answer = await answered(200, part(historyPath(of, '?page_size=100'), who))
  return (answer.json as { results: Entry[] }).results
}
const brief = (entries: readonly Entry[]) => entries.map(({ action, model, name }) => [action, model, name])
const runIn = ({ headers }: Answer) => /runs\/([^/]+)\//.exec(headers['content-location'] ?? '')?.[1]

describe('the history of an application has', () => {
  test('its creation and its changes, with those of its provider: by whom, in which run, from -> to', async () => {
    const made = await there.admin.submit('oauth2', slug, {
      owner: 'team-one',
      headers: { 'x-request-id': `make-${slug}` },
    })
    const changed = await there.admin.submit('oauth2', slug, { app: { group: 'New' }, owner: 'team-one' })
    await there.admin.submit('oauth2', slug, { app: { group: 'New' }, owner: 'team-one' })
    const entries = await history()
    expect(brief(entries)).toEqual([
      ['update', application, slug],
      ['create', provider, slug],
      ['create', application, slug],
    ])
    expect(entries[0]).toMatchObject({
      ...{ run: runIn(changed), owner: 'team-one', user: { username: 'admin' }, was: null },
      fields: { group: { from: 'Monitoring', to: 'New' } },
    })
    expect(entries[1]?.fields).toMatchObject({ client_secret: 'changed', name: { from: null, to: slug } })
    expect(entries[2]).toMatchObject({ run: runIn(made), request_id: `make-${slug}` })
    expect(await runsOf(`application:${slug}`)).toEqual([runIn(changed), runIn(made)])
    expect(await runsOf(`provider:${slug}`)).toEqual([runIn(made)])
    expect(await runsOf(`oauth2provider:${slug}`)).toEqual([runIn(made)])
    expect(await runsOf(`group:${slug}`)).toEqual([])
  })

  test('what a set changed, where its run has no slug', async () => {
    await there.admin.submit('oauth2', slug)
    const others = await Promise.all([1, 2].map((each) => named('ldap', `${slug}-${each}`)))
    const set = [...others, await named('oauth2', slug, { app: { group: 'By a set' } })]
    const answer = await answered(200, there.admin.put('/api/v3/blueprints/', set))
    expect((await runsOf(`application:${slug}`))[0]).toBe(runIn(answer))
    expect((await history())[0]).toMatchObject({
      run: runIn(answer),
      fields: { group: { from: 'Monitoring', to: 'By a set' } },
    })
  })

  test('its rename, under both names', async () => {
    await there.admin.submit('oauth2', slug)
    const fresh = `${slug}-new`
    await answered(200, there.admin.submit('oauth2', slug, { app: { slug: fresh, was: slug } }))
    const entries = await history(fresh)
    expect(entries[0]).toMatchObject({ action: 'update', name: fresh, was: slug })
    expect(await history(slug)).toEqual(entries)
    expect(await runsOf(`application:${slug}`)).toEqual(await runsOf(`application:${fresh}`))
    // The retention deletes the oldest entries first: its rename is then all that has the former name.
    await execute(
      there.db,
      sql`DELETE FROM audit_rows WHERE pk IN (SELECT audit_pk FROM object_changes WHERE name = ${slug} AND action = 'create')`,
    )
    expect(brief(await history(slug))).toEqual([['update', application, fresh]])
  })

  test('the same by its key, also when it is gone, and nothing by the key of another', async () => {
    await there.admin.submit('oauth2', slug)
    await there.admin.submit('oauth2', slug, { app: { group: 'A' } })
    const { pk } = (await there.admin.get(`/api/v3/core/applications/${slug}/`)).json as { pk: string }
    const entries = await history()
    expect(entries.length).toBeGreaterThan(2)
    expect(await history(pk)).toEqual(entries)
    expect(await runsOf(`application:${pk}`)).toEqual(await runsOf(`application:${slug}`))
    const first = (await part(historyPath(pk.toUpperCase(), '?page_size=1'))).json as { next: string }
    const rest = (await part(first.next)).json as { results: Entry[]; changed_outside: unknown }
    expect([rest.results[0], rest.changed_outside]).toEqual([entries[1], false])
    const bound = await there.make.user({ permissions: ['view_application'], owners: ['team-b'] })
    expect((await part(historyPath(pk), bound)).status).toBe(404)
    await there.admin.send({ method: 'DELETE', url: `/api/v3/core/applications/${slug}/` })
    expect((await history(pk))[0]).toMatchObject({ action: 'delete', model: application, name: slug })
    expect((await part(historyPath(randomUUID()))).status).toBe(404)
  })

  test('its deletion by a request, and what that deleted with it', async () => {
    await there.admin.submit('oauth2', slug, { owner: 'team-one' })
    const answer = await there.admin.send({
      ...{ method: 'DELETE', url: `/api/v3/core/applications/${slug}/?with_provider=true` },
      headers: { 'gatewright-owner': 'team-one', 'x-request-id': `gone-${slug}` },
    })
    expect(answer.status).toBe(204)
    const [last, ...before] = await history()
    expect(last).toMatchObject({
      action: 'delete',
      name: slug,
      owner: 'team-one',
      run: null,
      request_id: `gone-${slug}`,
    })
    expect(brief(before)).toEqual([
      ['delete', provider, slug],
      ['create', provider, slug],
      ['create', application, slug],
    ])
    const gone = sql`SELECT run_id FROM object_changes WHERE model = ${provider} AND name = ${slug} AND action = 'delete'`
    expect(await rows(there.db, gone)).toEqual([{ run_id: null }])
  })

  test('no plan, nothing that was refused, and nothing of other applications', async () => {
    await there.admin.submit('oauth2', slug)
    await there.admin.submit('oauth2', slug, { app: { group: 'Planned' }, query: 'dry_run=true' })
    expect((await there.admin.submit('oauth2', slug, { app: { slug: 'no slug' } })).status).toBe(400)
    await there.admin.submit('ldap', `${slug}-other`)
    expect(brief(await history())).toHaveLength(2)
  })
})

test('a single write of any object is recorded, from -> to', async () => {
  const { pk, name } = await there.make.group()
  const answer = await there.admin.send({
    ...{ method: 'PATCH', url: `/api/v3/core/groups/${pk}/`, headers: { 'content-type': 'application/json' } },
    payload: { name: `${name} renamed` },
  })
  expect(answer.status, answer.text).toBe(200)
  expect(
    await rows(there.db, sql`SELECT action, name, was, run_id, change, fields FROM object_changes WHERE key = ${pk}`),
  ).toEqual([
    {
      ...{ action: 'update', name: `${name} renamed`, was: name, run_id: null, change: null },
      fields: { name: { from: name, to: `${name} renamed` } },
    },
  ])
})

describe('who sees it', () => {
  const asViewer = (permissions: string[], owners: string[] = []) => there.make.user({ permissions, owners })

  test('a caller who may view the application, without others’ names and runs', async () => {
    await there.admin.submit('oauth2', slug)
    const viewer = await asViewer(['view_application'])
    const entries = await history(slug, viewer)
    expect(entries).toMatchObject([{ model: application, user: null, run: null }])
    const more = await asViewer(['view_application', 'view_oauth2provider', 'view_user', 'view_run'])
    expect(await history(slug, more)).toEqual(await history())
    expect((await part(historyPath(), await asViewer(['view_group']))).status).toBe(403)
  })

  test('of an owner, when the permission is bound to owners', async () => {
    await there.admin.submit('oauth2', slug, { owner: 'team-one' })
    expect(brief(await history(slug, await asViewer(['view_application'], ['team-one'])))).toHaveLength(1)
    const other = await part(historyPath(), await asViewer(['view_application'], ['team-two']))
    expect([other.status, other.json]).toMatchObject([404, { code: 'not_found' }])
    const nothing = await part(historyPath('never-there'), await asViewer(['view_application'], ['team-two']))
    expect(nothing.text).toBe(other.text.replaceAll(slug, 'never-there'))
    const takeover = { 'gatewright-owner': 'team-two', 'gatewright-allow': 'takeover' }
    expect((await there.admin.submit('oauth2', slug, { app: { group: 'New' }, headers: takeover })).status).toBe(200)
    const seen = await history(slug, await asViewer(['view_application'], ['team-two']))
    expect(brief(seen)).toEqual([['update', application, slug]])
  })
})

test('it comes in parts, the newest first', async () => {
  for (const group of ['a', 'b', 'c']) await there.admin.submit('oauth2', slug, { app: { group } })
  const whole = await history()
  const read: Entry[] = []
  let path: string | null = historyPath(slug, '?page_size=1')
  while (path !== null) {
    const { json } = await part(path)
    const { results, next } = json as { results: Entry[]; next: string | null }
    expect(results).toHaveLength(1)
    read.push(...results)
    path = next
  }
  expect(read).toEqual(whole)
  expect(await part(historyPath(slug, '?before=x'))).toMatchObject({ status: 400 })
})

test.each(['shop', 'planet:x', 'application:', ':x'])('runs by the object %s: 400 with the kinds', async (object) => {
  const answer = await answered(400, there.admin.get(`/api/v3/blueprints/runs/?object=${object}`))
  expect(answer.text).toContain('Must be a kind and a name, such as application:shop')
})
