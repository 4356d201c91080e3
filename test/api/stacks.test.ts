import { expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { answered, aProvider, applied, installation, rows, sql, until } from '../support/kit.ts'
import { application, fresh, group, type Member, readerOf, role } from './stack-cases.ts'

/** Stacks: what one repository manages, by name. */

const on = await installation()
const { apply, plan, get } = on.admin
const { stackOf, namesIn } = readerOf(on)

test('an apply records what its document names; the same again writes nothing', async () => {
  const [stack, slug, name] = [fresh(), fresh('app'), fresh('group')]
  const entries = [group(name), application(slug)]
  const first = await applied(apply(entries, { stack, owner: 'team-a' }))
  const read = await stackOf(stack)
  expect(read).toMatchObject({ size: 2, left_over: 0, run: first.runId, run_before: null, owners: ['team-a'] })
  expect(read.members.map(({ name, fields }) => [name, fields])).toEqual([
    [slug, ['name', 'slug']],
    [name, ['name']],
  ])
  await applied(apply(entries, { stack, owner: 'team-a' }))
  expect((await stackOf(stack)).run).toBe(first.runId)
  const listed = (await get(`/api/v3/blueprints/stacks/?search=${stack}`)).json
  expect(listed).toMatchObject({ pagination: { count: 1 }, results: [{ name: stack, size: 2, owners: ['team-a'] }] })
  expect((await get(`/api/v3/core/applications/?stack=${stack}`)).json).toMatchObject({ results: [{ slug }] })
  expect((await get(`/api/v3/core/groups/?stack=${stack}`)).json).toMatchObject({ results: [{ name }] })
  expect((await get(`/api/v3/blueprints/runs/?stack=${stack}`)).json).toMatchObject({ pagination: { count: 2 } })
})

test('what left the files of any model is left over, and deleted with the reviewed plan', async () => {
  const [stack, slug, one, two, kept] = [fresh(), fresh('app'), fresh('role'), fresh('group'), fresh('group')]
  const parent = { ...group(two), id: 'parent' }
  const twoNames = { model: 'service_mappings.propertymapping', identifiers: { name: two, kind: 'oauth2' }, attrs: {} }
  const all = [role(one), parent, group(kept), application(slug), twoNames]
  await applied(apply(all, { stack }))
  const later = await applied(apply([group(kept)], { stack }))
  expect(later.logs).toContainEqual(expect.stringContaining(`role "${one}" is left over`))
  expect(await stackOf(stack)).toMatchObject({ size: 5, left_over: 4 })
  const planned = await plan([group(kept)], { stack })
  for (const object of [`role "${one}"`, `group "${two}"`, `property mapping "${two}"`])
    expect(planned.logs).toContain(`${object} would be deleted`)
  await answered(409, apply([group(kept)], { stack, allow: 'deletes=2' }))
  await applied(apply([group(kept)], { stack, ifMatch: planned.etag }))
  expect(await namesIn(stack)).toEqual([kept])
  expect(await on.db.role.count({ where: { name: one } })).toBe(0)
  expect(await on.db.propertyMapping.count({ where: { name: two } })).toBe(0)
  await applied(apply([group(kept)], { stack, ifMatch: planned.etag }))
})

test('the number of what is left over acknowledges it, too; a child goes before its parent', async () => {
  const [stack, child, parent] = [fresh(), fresh('child'), fresh('aparent')]
  const document = [{ ...group(parent), id: 'p' }, group(child, { parent })]
  await applied(apply(document, { stack }))
  await applied(apply([role(fresh())], { stack, allow: 'deletes=2' }))
  expect(await on.db.group.count({ where: { name: { in: [child, parent] } } })).toBe(0)
})

test('a stack becomes empty by one entry that is absent; a document without entries says so', async () => {
  const [stack, one, two] = [fresh(), fresh('group'), fresh('group')]
  await applied(apply([group(one), group(two)], { stack }))
  const refused = await answered(400, apply([], { stack }))
  expect(refused.json).toMatchObject({ entries: [expect.stringContaining('name one object of it as absent')] })
  await applied(apply([{ ...group(one), state: 'absent', attrs: {} }], { stack, allow: 'deletes=1' }))
  expect(await stackOf(stack)).toMatchObject({ size: 0 })
  expect(await on.db.group.count({ where: { name: { in: [one, two] } } })).toBe(0)
})

test('what stays and refers to it is named, and nothing is deleted', async () => {
  const [stack, name, slug] = [fresh(), fresh('provider'), fresh('app')]
  const provider = aProvider('scim', name, { url: 'https://a.example', token: name })
  await applied(apply([provider], { stack }))
  await applied(apply([application(slug, { name: 'A', provider: name })]))
  const refused = await plan([role(fresh())], { stack })
  expect(refused.status).toBe(400)
  expect(refused.text).toContain(`is the provider of application \\"${slug}\\": change or delete that first`)
})

test('retain lets it stay without the stack, and so does the operation that forgets it', async () => {
  const [stack, kept, forgotten, last] = [fresh(), fresh('group'), fresh('group'), fresh('group')]
  await applied(apply([{ ...group(kept), retain: true }, group(forgotten), group(last)], { stack }))
  const path = `/api/v3/blueprints/stacks/${stack.toUpperCase()}/members/group/${forgotten}/`
  await answered(204, on.admin.delete(path))
  await answered(404, on.admin.delete(path))
  const planned = await plan([group(last)], { stack })
  expect(planned.logs).toContain(`group "${kept}" would stay without stack "${stack}": its entry had retain`)
  await applied(apply([group(last)], { stack, ifMatch: planned.etag }))
  expect(await namesIn(stack)).toEqual([last])
  expect(await on.db.group.count({ where: { name: { in: [kept, forgotten] } } })).toBe(2)
})

test('a member is forgotten by its model and name, or by its key where several have that name', async () => {
  const [stack, name] = [fresh(), fresh('mapping')]
  const mappings = ['oauth2', 'saml'].map((kind) => ({
    ...{ model: 'service_mappings.propertymapping', identifiers: { name, kind } },
    attrs: {},
  }))
  await applied(apply(mappings, { stack }))
  const path = (called: string, model = 'service_mappings.propertymapping') =>
    `/api/v3/blueprints/stacks/${stack}/members/${model}/${encodeURIComponent(called)}/`
  const refused = await answered(400, on.admin.delete(path(name)))
  expect(refused.json).toMatchObject({ member: ['Several are called so: name it by its key.'] })
  for (const unknown of [path(name, 'service_core.group'), path(name, 'none'), path('none')])
    await answered(404, on.admin.delete(unknown))
  const [first] = (await stackOf(stack)).members as (Member & { key: string })[]
  await answered(204, on.admin.delete(path(first?.key ?? '')))
  await answered(204, on.admin.delete(path(name, 'propertymapping')))
  expect(await namesIn(stack)).toEqual([])
})

test('what an apply of the stack is about to delete is not forgotten meanwhile: the request waits for the apply', async () => {
  const [stack, kept, gone] = [fresh(), fresh('kept'), fresh('gone')]
  await applied(apply([group(kept), group(gone)], { stack }))
  const waits = (event: string) =>
    until(`a wait for ${event}`, async () => {
      const waiting = sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = ${event}`
      return (await rows(on.db, waiting)).length > 0
    })
  const sent: ReturnType<typeof apply>[] = []
  await transaction(on.db, async (tx) => {
    await rows(tx, sql`SELECT pk FROM groups WHERE name = ${gone} FOR UPDATE`)
    sent.push(apply([group(kept)], { stack, allow: 'deletes=1' }))
    await waits('transactionid')
    sent.push(on.admin.delete(`/api/v3/blueprints/stacks/${stack}/members/group/${gone}/`))
    await waits('advisory')
  })
  const [done, forgotten] = await Promise.all(sent)
  expect([done?.json, forgotten?.status]).toMatchObject([{ applied: true }, 404])
  expect(await namesIn(stack)).toEqual([kept])
  expect(await on.db.group.count({ where: { name: gone } })).toBe(0)
})

test('fields that left an entry are reported with their values, once', async () => {
  const [stack, slug] = [fresh(), fresh('app')]
  await applied(apply([application(slug, { name: 'A', meta_description: 'old' })], { stack }))
  const less = [application(slug)]
  const line = `application "${slug}": meta_description is no longer managed, keeps "old"`
  expect((await plan(less, { stack })).logs).toContain(line)
  expect((await plan(less, { stack, query: 'reset=true' })).logs).not.toContain(line)
  expect((await applied(apply(less, { stack }))).logs).toContain(line)
  expect((await plan(less, { stack })).logs).not.toContain(line)
})

test('two applies of one stack run one after the other; what one leaves over the other may name', async () => {
  const [stack, ...names] = [fresh(), fresh('a'), fresh('b'), fresh('c')]
  const results = await Promise.all(names.map((name) => apply([group(name)], { stack })))
  expect(results.map(({ status }) => status)).toEqual([200, 200, 200])
  const { size, left_over } = await stackOf(stack)
  expect([size, left_over]).toEqual([3, 2])
})

test('a document with prune is a stack of its owner and title', async () => {
  const [owner, kept, gone] = [fresh('team'), fresh('app'), fresh('app')]
  const options = { owner, name: 'shop', members: { prune: true } }
  await applied(apply([application(kept), application(gone)], options))
  const planned = await plan([application(kept)], options)
  await applied(apply([application(kept)], { ...options, ifMatch: planned.etag }))
  expect(await namesIn(`${owner}/shop`)).toEqual([kept])
  expect(await on.db.application.count({ where: { slug: gone } })).toBe(0)
  const refused = await answered(400, apply([application(kept)], { ...options, stack: fresh() }))
  expect(refused.text).toContain('leave prune out')
})

test('an entry that renames a member keeps it, and a plain request that renames or deletes it is followed', async () => {
  const [stack, was, name, last, slug] = [fresh(), fresh('group'), fresh('group'), fresh('group'), fresh('app')]
  await applied(apply([group(was), application(slug)], { stack }))
  const [before] = (await stackOf(stack)).members.slice(1) as (Member & { key: string })[]
  await applied(apply([{ ...group(name), was }, application(slug)], { stack }))
  expect((await stackOf(stack)).members).toContainEqual(
    expect.objectContaining({ name, key: before?.key, left_at: null }),
  )
  await answered(200, on.admin.patch(`/api/v3/core/groups/${before?.key}/`, { name: last }))
  expect(await namesIn(stack)).toContain(last)
  await answered(204, on.admin.delete(`/api/v3/core/applications/${slug}/`))
  expect(await stackOf(stack)).toMatchObject({ size: 1, left_over: 0 })
  // The files still have the name before: the renamed group is left over beside a new one.
  await applied(apply([group(name), application(slug)], { stack }))
  expect(await stackOf(stack)).toMatchObject({ size: 3, left_over: 1 })
})

test('an apply of a stack beside a PATCH and a DELETE of its members is done whole, or refused', async () => {
  for (let round = 0; round < 8; round += 1) {
    const [stack, kept, gone, slug] = [fresh(), fresh('kept'), fresh('gone'), fresh('app')]
    await applied(apply([group(kept), group(gone), application(slug)], { stack }))
    const { pk } = await on.db.group.findUniqueOrThrow({ where: { name: gone } })
    const [answer, patched, deleted] = await Promise.all([
      apply([group(kept)], { stack, allow: 'deletes=2' }),
      on.admin.patch(`/api/v3/core/groups/${pk}/`, { attributes: { round } }),
      on.admin.delete(`/api/v3/core/applications/${slug}/`),
    ])
    expect([200, 409]).toContain(answer.status)
    const failures = () => on.log.filter((line) => line.includes('"level":50')).join('\n')
    expect([200, 404], `${patched.text}${failures()}`).toContain(patched.status)
    expect([204, 404], `${deleted.text}${failures()}`).toContain(deleted.status)
    const isDone = answer.status === 200 && Object(answer.json).applied === true
    const left = await on.db.group.count({ where: { name: gone } })
    expect([answer.text, left]).toEqual([answer.text, isDone ? 0 : 1])
    expect((await namesIn(stack)).sort()).toEqual(isDone ? [kept] : [gone, kept].sort())
    await applied(apply([group(kept)], { stack, ifMatch: (await plan([group(kept)], { stack })).etag }))
  }
})

test('a document with prune and without a title is of one stack, whatever its first entry is', async () => {
  const [owner, one, two] = [fresh('team'), fresh('app'), fresh('app')]
  const send = (slugs: readonly string[], allow = 'deletes=0') =>
    on.admin.put(
      '/api/v3/blueprints/',
      { version: 1, prune: true, entries: slugs.map((slug) => application(slug)) },
      { owner, allow },
    )
  await applied(send([one, two]))
  await applied(send([two], 'deletes=1'))
  await applied(send([], 'deletes=1'))
  expect(await on.db.application.count({ where: { slug: { in: [one, two] } } })).toBe(0)
})

test('a role that a group of no stack has is not deleted; members of a group that left the files do not hold it', async () => {
  const [stack, name, holder, crowd, member] = [fresh(), fresh('role'), fresh('holder'), fresh('crowd'), fresh('user')]
  await applied(apply([role(name), group(crowd)], { stack }))
  await applied(apply([group(holder, { roles: [name] })]))
  await applied(
    apply([{ model: 'service_core.user', identifiers: { username: member }, attrs: { name: 'M', groups: [crowd] } }]),
  )
  const refused = await answered(400, plan([group(fresh())], { stack }))
  expect(refused.text).toContain(
    `role \\"${name}\\" is one of the roles of group \\"${holder}\\": change or delete that first, or let it stay without its stack`,
  )
  expect(refused.text).not.toContain(crowd)
  await applied(apply([group(holder, { roles: [] })]))
  await applied(apply([group(fresh())], { stack, allow: 'deletes=2' }))
  expect(await on.db.role.count({ where: { name } })).toBe(0)
})
