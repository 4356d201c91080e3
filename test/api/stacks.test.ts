import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import {
  anApplication,
  answered,
  aProvider,
  applied,
  askAs,
  type Entry,
  installation,
  rows,
  sql,
  until,
} from '../support/kit.ts'

/** Stacks: what one repository manages, by name. */

const on = await installation()
const { apply, plan, get } = on.admin

const fresh = (word = 'stack') => `${word}-${randomUUID().slice(0, 8)}`
const application = (slug: string, attrs: object = { name: 'A' }) => anApplication(slug, attrs)
const group = (name: string, attrs: object = {}): Entry => ({
  model: 'service_core.group',
  identifiers: { name },
  attrs,
})
const role = (name: string): Entry => ({ model: 'service_rbac.role', identifiers: { name }, attrs: {} })

type Member = { model: string; name: string; fields: string[]; left_at: string | null }
const stackOf = async (name: string) =>
  (await answered(200, get(`/api/v3/blueprints/stacks/${encodeURIComponent(name)}/`))).json as {
    size: number
    left_over: number
    run: string | null
    run_before: string | null
    owners: string[]
    members: Member[]
  }
const namesIn = async (name: string) => (await stackOf(name)).members.map((each) => each.name)

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

test('what stays and refers to it is named, and nothing is deleted', async () => {
  const [stack, name, slug] = [fresh(), fresh('provider'), fresh('app')]
  const provider = aProvider('scim', name, { url: 'https://a.example', token: name })
  await applied(apply([provider], { stack }))
  await applied(apply([application(slug, { name: 'A', provider: name })]))
  const refused = await plan([role(fresh())], { stack })
  expect(refused.status).toBe(400)
  expect(refused.text).toContain(`is the provider of application \\"${slug}\\": change or delete that first`)
})

test('a row of another stack is a conflict that names it; a takeover or a reviewed plan moves it', async () => {
  const [one, two, three, name] = [fresh(), fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)], { stack: one }))
  const refused = await answered(409, apply([group(name)], { stack: two }))
  expect(refused.detail).toContain(`group "${name}" belongs to stack "${one}", and the request is of stack "${two}"`)
  await applied(apply([group(name)], { stack: two, allow: 'takeover' }))
  expect([await namesIn(one), await namesIn(two)]).toEqual([[], [name]])
  const planned = await plan([group(name)], { stack: three })
  expect(planned.logs).toContain(`group "${name}" would leave stack "${two}"`)
  await applied(apply([group(name)], { stack: three, ifMatch: planned.etag }))
  expect([await namesIn(two), await namesIn(three)]).toEqual([[], [name]])
})

test('a reviewed plan does not take over from a stack that came after it', async () => {
  const [one, two, name] = [fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)]))
  const planned = await plan([group(name, { attributes: { a: 1 } })], { stack: one })
  await applied(apply([group(name)], { stack: two }))
  const refused = await answered(
    412,
    apply([group(name, { attributes: { a: 1 } })], { stack: one, ifMatch: planned.etag }),
  )
  expect(refused.detail).toContain('other stacks')
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

test('a list of stacks has pages, orders and a search, and counts what the caller may know', async () => {
  const word = fresh('listed')
  const names = [`${word}-b`, `${word}-c`, `${word}-a`]
  for (const stack of names) await applied(apply([group(fresh('group'))], { stack }))
  await applied(apply([role(fresh('role'))], { stack: `${word}-d` }))
  const listed = async (query: string, by = on.admin) => {
    const { json } = await answered(200, by.get(`/api/v3/blueprints/stacks/?search=${word}&${query}`))
    const { pagination, results } = json as { pagination: { count: number }; results: { name: string }[] }
    return [pagination.count, ...results.map(({ name }) => name.at(-1))]
  }
  expect(await listed('')).toEqual([4, 'a', 'b', 'c', 'd'])
  expect(await listed('page_size=3&page=2')).toEqual([4, 'd'])
  expect(await listed('ordering=-created_at&page_size=2')).toEqual([4, 'd', 'a'])
  const reader = await on.make.user({ permissions: ['view_group'] })
  expect(await listed('page_size=2', reader)).toEqual([3, 'a', 'b'])
  expect(await listed('page_size=2&page=2', reader)).toEqual([3, 'c'])
  await answered(400, get('/api/v3/blueprints/stacks/?ordering=size'))
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

test('a plan stands when a field changes that no file names, and not when a named one does', async () => {
  const [stack, slug, other] = [fresh(), fresh('app'), fresh('app')]
  const document = [application(slug, { name: 'A' }), application(other, { name: 'B' })]
  await applied(apply([application(slug, { name: 'A' })], { stack }))
  const planned = await plan(document, { stack })
  await answered(200, on.admin.apply([application(slug, { meta_description: 'hotfix' })]))
  await applied(apply(document, { stack, ifMatch: planned.etag }))
  const again = await plan([application(slug, { name: 'A2' }), application(other, { name: 'B' })], { stack })
  await applied(apply([application(slug, { name: 'hotfix' })]))
  const refused = await answered(
    412,
    apply([application(slug, { name: 'A2' }), application(other, { name: 'B' })], { stack, ifMatch: again.etag }),
  )
  expect(refused.detail).toContain(`application "${slug}"`)
})

test('the run before is that of the stack: its document takes back what the last one created, changed and deleted', async () => {
  const [stack, slug, gone, made, other] = [fresh(), fresh('app'), fresh('role'), fresh('group'), fresh('group')]
  const monday = await applied(apply([application(slug, { name: 'A' }), role(gone)], { stack }))
  const next = [application(slug, { name: 'B' }), group(made)]
  const planned = await plan(next, { stack })
  const tuesday = await applied(apply(next, { stack, ifMatch: planned.etag }))
  await applied(apply([group(other, { attributes: { from: 'another team' } })], { stack: fresh() }))
  await applied(apply(next, { stack }))
  expect(await stackOf(stack)).toMatchObject({ run: tuesday.runId, run_before: monday.runId })
  // The same document again, which undoes a hotfix, is no step to go back to.
  await applied(apply([application(slug, { name: 'hotfix' })]))
  const again = await applied(apply(next, { stack }))
  const { run, run_before } = await stackOf(stack)
  expect([run, run_before]).toEqual([again.runId, monday.runId])
  const path = `/api/v3/blueprints/runs/${run_before}/apply/`
  const back = await answered(200, on.admin.post(`${path}?dry_run=true`))
  expect(back.logs).toContain(`group "${made}" would be deleted`)
  await applied(on.admin.post(path, undefined, { ifMatch: back.etag }))
  expect(await namesIn(stack)).toEqual([slug, gone].sort())
  expect((await on.db.application.findFirstOrThrow({ where: { slug } })).name).toBe('A')
  expect(await on.db.group.count({ where: { name: { in: [made, other] } } })).toBe(1)
})

test('a refusal names the fields, the run and its user; a plan that stands names the run that did it', async () => {
  const [stack, slug] = [fresh(), fresh('app')]
  await applied(apply([application(slug, { name: 'A' })], { stack }))
  const to = [application(slug, { name: 'B' })]
  const planned = await plan(to, { stack })
  const hotfix = await applied(apply([application(slug, { name: 'hotfix' })]))
  const refused = await answered(412, apply(to, { stack, ifMatch: planned.etag }))
  expect(refused.detail).toContain(`application "${slug}" changed after the plan: name by run ${hotfix.runId} of `)
  const again = await plan(to, { stack })
  const done = await applied(apply(to, { stack, ifMatch: again.etag }))
  const stands = await applied(apply(to, { stack, ifMatch: again.etag }))
  expect(stands.logs.at(-1)).toContain(
    `nothing is left of the reviewed plan: it stands, applied by run ${done.runId} of `,
  )
})

test('two applies of one stack run one after the other; what one leaves over the other may name', async () => {
  const [stack, ...names] = [fresh(), fresh('a'), fresh('b'), fresh('c')]
  const results = await Promise.all(names.map((name) => apply([group(name)], { stack })))
  expect(results.map(({ status }) => status)).toEqual([200, 200, 200])
  const { size, left_over } = await stackOf(stack)
  expect([size, left_over]).toEqual([3, 2])
})

test('callers see the objects that they may know, and let nothing go that they may not change', async () => {
  const [stack, name, slug] = [fresh(), fresh('group'), fresh('app')]
  await applied(apply([group(name), application(slug)], { stack, owner: 'team-a' }))
  const reader = await on.make.user({ permissions: ['view_group'] })
  const path = `/api/v3/blueprints/stacks/${stack}/`
  const seen = (await answered(200, reader.get(path))).json as { size: number; members: (Member & { key: string })[] }
  expect(seen).toMatchObject({ size: 1, members: [{ name }] })
  const [member] = seen.members
  await answered(403, reader.delete(`${path}members/${member?.model}/${member?.key}/`))
  const blind = await on.make.user({ permissions: ['view_flow'] })
  await answered(404, blind.get(path))
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

test('a token that is bound to a stack writes by its documents only, and makes no token without the bond', async () => {
  const [stack, name] = [fresh(), fresh('group')]
  const made = await answered(
    201,
    on.admin.post('/api/v3/core/tokens/', { identifier: fresh('token'), stacks: [stack] }),
  )
  const { identifier } = made.json as { identifier: string }
  const { key } = (await answered(200, get(`/api/v3/core/tokens/${identifier}/view_key/`))).json as { key: string }
  const bound = askAs(on.app, key)
  await applied(bound.apply([group(name)], { stack }))
  for (const refused of [
    bound.apply([group(name)]),
    bound.apply([group(name)], { stack: fresh() }),
    bound.post('/api/v3/core/groups/', { name: fresh('group') }),
  ])
    expect((await answered(403, refused)).detail).toContain(stack)
  await answered(400, on.admin.patch(`/api/v3/core/tokens/${identifier}/`, { stacks: [] }))
  const [other, foreign] = [fresh(), fresh('foreign')]
  await applied(apply([group(foreign)], { stack: other }))
  const taking = bound.apply([group(foreign)], { stack, allow: 'takeover' })
  expect((await answered(403, taking)).detail).toContain(`documents of stack "${stack}" only`)
  expect(await namesIn(other)).toEqual([foreign])
  const inner = fresh('inner')
  await answered(201, bound.post('/api/v3/core/tokens/', { identifier: inner }))
  expect((await on.db.token.findFirstOrThrow({ where: { identifier: inner } })).ceiling).toContain(`stack:${stack}`)
})

test('a token shows to what it is bound, by itself or by the one that made it; it makes none for another stack', async () => {
  const [stack, other, identifier, inner] = [fresh(), fresh(), fresh('token'), fresh('inner')]
  const path = '/api/v3/core/tokens/'
  const body = { identifier, stacks: [stack], owners: ['team-b', 'team-a'] }
  const made = await answered(201, on.admin.post(path, body))
  expect(made.json).not.toHaveProperty('bound_to')
  const { key } = (await answered(200, get(`${path}${identifier}/view_key/`))).json as { key: string }
  const bound = askAs(on.app, key)
  await answered(201, bound.post(path, { identifier: inner }))
  for (const each of [identifier, inner]) {
    const read = await answered(200, get(`${path}${each}/`))
    expect(read.json).toMatchObject({ bound_to: { owners: ['team-a', 'team-b'], stacks: [stack] } })
    expect((await get(`${path}?search=${each}`)).json).toEqual(expect.objectContaining({ results: [read.json] }))
    // What was read can be sent back, under the tag of the read and under that of a write.
    const changed = await answered(200, on.admin.patch(`${path}${each}/`, read.json as object, { ifMatch: read.etag }))
    await answered(200, on.admin.patch(`${path}${each}/`, { description: 'd' }, { ifMatch: changed.etag }))
  }
  const refused = await answered(400, bound.post(path, { identifier: fresh(), stacks: [stack, other] }))
  expect(refused.json).toMatchObject({
    stacks: [`The token that makes it is bound to stack "${stack}": it makes none for "${other}".`],
  })
})

test('the number is compared where something is left over, beside a plan, too; a plan of more or fewer is refused', async () => {
  const [stack, kept, ...gone] = [fresh(), fresh('kept'), fresh('gone'), fresh('gone')] as [string, string, ...string[]]
  await applied(
    apply(
      [kept, ...gone].map((each) => group(each)),
      { stack },
    ),
  )
  const { etag: ifMatch } = await plan([group(kept)], { stack })
  for (const options of [{ allow: 'deletes=1' }, { allow: 'deletes=3', ifMatch }]) {
    const refused = await on.refused(409, () => apply([group(kept)], { stack, ...options }))
    expect(refused.detail).toMatch(
      /^2 left over, and not [13]: group "gone.*Gatewright-Allow: deletes=2 deletes them\.$/,
    )
  }
  const [extra] = [fresh('extra')]
  await applied(apply([group(kept), group(extra)], { stack }))
  const more = await answered(412, apply([group(kept)], { stack, ifMatch }))
  expect(more.detail).toContain('changed after the plan')
  await applied(apply([{ ...group(extra), state: 'absent' }, group(kept)], { stack }))
  const again = await plan([group(kept)], { stack })
  await answered(200, apply([{ ...group(gone[0] ?? ''), state: 'absent' }]))
  const fewer = await answered(412, apply([group(kept)], { stack, ifMatch: again.etag }))
  expect(fewer.detail).toContain('the plan has 1 more to delete than there is now')
  const done = await applied(apply([group(kept)], { stack, allow: 'deletes=1' }))
  const { changes } = await on.admin.runOf(done)
  // What is left over belongs to no entry.
  expect(changes.map(({ action, entry }) => [action, entry])).toEqual([
    ['unchanged', undefined],
    ['delete', null],
  ])
  // The same pipeline again: there is nothing to acknowledge.
  await applied(apply([group(kept)], { stack, allow: 'deletes=1' }))
  for (const allow of ['deletes', 'deletes=', 'deletes=many', 'deletes=-1', 'takeover=1', 'deletes=1.5'])
    expect((await on.refused(400, () => apply([group(kept)], { stack, allow }))).json).toHaveProperty(
      'Gatewright-Allow',
    )
})

test('a plan is applied to its own stack only, and takes no unchanged row that another stack got after it', async () => {
  const [one, two, name] = [fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)]))
  const planned = await plan([group(name)], { stack: one })
  for (const stack of [{ stack: two }, {}]) {
    const refused = await answered(412, apply([group(name)], { ...stack, ifMatch: planned.etag }))
    expect(refused.detail).toContain('the plan is of stack "')
  }
  await applied(apply([group(name)], { stack: two }))
  const refused = await answered(412, apply([group(name)], { stack: one, ifMatch: planned.etag }))
  expect(refused.detail).toContain('what other stacks lose changed after the plan')
  expect([await namesIn(two)]).toEqual([[name]])
})

test('what another stack has is deleted by an entry only when that is acknowledged', async () => {
  const [one, two, name] = [fresh(), fresh(), fresh('group')]
  await applied(apply([group(name)], { stack: one }))
  const gone: Entry = { ...group(name), state: 'absent' }
  const refused = await on.refused(409, () => apply([gone], { stack: two }))
  expect(refused.detail).toContain(`group "${name}" belongs to stack "${one}"`)
  expect((await plan([gone], { stack: two })).logs).toContain(`group "${name}" would leave stack "${one}"`)
  await applied(apply([gone], { stack: two, allow: 'takeover' }))
  expect(await namesIn(one)).toEqual([])
})

test('takeovers of several rows are applied as planned, in any order of the entries', async () => {
  const [one, two, stack] = [fresh(), fresh(), fresh()]
  const names = Array.from({ length: 12 }, () => fresh('group'))
  for (const [index, each] of names.entries())
    await applied(apply([group(each)], { stack: [one, two][index % 2] ?? one, allow: 'takeover' }))
  const { etag: ifMatch } = await plan(
    names.map((each) => group(each)),
    { stack },
  )
  await applied(
    apply(
      names.map((each) => group(each)),
      { stack, ifMatch },
    ),
  )
  expect([await namesIn(one), await namesIn(two), (await namesIn(stack)).length]).toEqual([[], [], 12])
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
    expect(
      [
        [200, 404],
        [204, 404],
      ].map((of, index) => of.includes([patched, deleted][index]?.status ?? 0)),
    ).toEqual([true, true])
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

test('a caller without the right to delete its objects leaves nothing over in a stack, and deletes nothing', async () => {
  const [stack, name, mine] = [fresh(), fresh('group'), fresh('role')]
  await applied(apply([group(name)], { stack }))
  const other = await on.make.user({ permissions: ['add_role', 'change_role', 'view_group'] })
  const refused = await answered(403, other.apply([role(mine)], { stack, allow: 'deletes=1' }))
  expect(refused.detail).toContain(`that the submitter may not delete: group "${name}" (delete_group)`)
  const { logs } = await applied(other.apply([role(mine)], { stack }))
  expect(logs).toContain(
    `group "${name}" stays in stack "${stack}": no entry names it, and the submitter may not delete it`,
  )
  const reviewed = await answered(200, other.plan([role(mine)], { stack }))
  await applied(other.apply([role(mine)], { stack, ifMatch: reviewed.etag }))
  expect(await stackOf(stack)).toMatchObject({ size: 2, left_over: 0 })
  const blind = await on.make.user({ permissions: ['add_role', 'change_role'] })
  expect((await answered(403, blind.apply([role(mine)], { stack, allow: 'deletes=1' }))).text).not.toContain(name)
  expect((await applied(blind.apply([role(mine)], { stack }))).logs).toEqual([`role "${mine}" unchanged`])
  expect(await namesIn(stack)).toEqual([name, mine].sort())
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
