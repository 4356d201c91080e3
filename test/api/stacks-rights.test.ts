import { expect, test } from 'vitest'
import { held } from '../runs/stand.ts'
import { answered, applied, askAs, dashboardOf, type Entry, installation, rows, sql, until } from '../support/kit.ts'
import { application, fresh, group, type Member, readerOf, role, scim } from './stack-cases.ts'

/** Who sees stacks and writes by their documents. */

const on = await installation()
const { apply, get } = on.admin
const { stackOf, namesIn } = readerOf(on)
const dashboard = dashboardOf(on)

async function boundTo(stack: string, identifier = fresh('token')) {
  await answered(201, on.admin.post('/api/v3/core/tokens/', { identifier, stacks: [stack] }))
  const { key } = (await answered(200, get(`/api/v3/core/tokens/${identifier}/view_key/`))).json as { key: string }
  return askAs(on.app, key)
}

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

test('a token that is bound to a stack writes by its documents only, and makes no token without the bond', async () => {
  const [stack, name, identifier] = [fresh(), fresh('group'), fresh('token')]
  const bound = await boundTo(stack, identifier)
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

test('a token that is bound to a stack deletes and relabels nothing of another one by what follows from its document', async () => {
  const [stack, other, slug, name] = [fresh(), fresh(), fresh('app'), fresh('provider')]
  const bound = await boundTo(stack)
  await applied(apply([scim(name)], { stack: other, owner: 'team-a' }))
  const document = [application(slug, { name: 'A', provider: name })]
  const relabelling = bound.apply(document, { stack, owner: 'team-b', allow: 'takeover' })
  expect((await answered(403, relabelling)).detail).toContain(`documents of stack "${stack}" only`)
  await applied(bound.apply(document, { stack, owner: 'team-a' }))
  const gone: Entry = { ...application(slug), state: 'absent', attrs: {} }
  const options = { stack, owner: 'team-a', query: 'replace_provider=true', allow: 'takeover' }
  expect((await answered(403, bound.apply([gone], options))).detail).toContain(`documents of stack "${stack}" only`)
  expect(await on.db.provider.findUnique({ where: { name } })).toMatchObject({ owner: 'team-a' })
})

test('a row whose owner changes while an apply waits to delete it is neither deleted nor forgotten', async () => {
  const [stack, slug, kept] = [fresh(), fresh('app'), fresh('kept')]
  const permissions = ['apply_blueprint', 'change_group', 'view_application', 'delete_application'] as const
  const caller = await on.make.user({ permissions: [...permissions], owners: ['team-a'] })
  await applied(apply([application(slug), group(kept)], { stack, owner: 'team-a' }))
  const release = await held(on, (tx) => tx.application.update({ where: { slug }, data: { owner: 'team-b' } }))
  const answer = caller.apply([group(kept)], { stack, owner: 'team-a', allow: 'deletes=1' })
  const waiting = sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await until('the apply to wait', async () => (await rows(on.db, waiting)).length > 0)
  await release()
  const { json, logs } = await answer
  expect([json, logs.join()]).toEqual([
    expect.objectContaining({ applied: false }),
    expect.stringContaining('that the submitter may not delete'),
  ])
  expect((await namesIn(stack)).sort()).toEqual([slug, kept].sort())
})

test('a token that is bound to a stack cancels and applies again runs of this stack alone', async () => {
  const [stack, other] = [fresh(), fresh()]
  const { pk } = await on.db.user.findFirstOrThrow({ where: { tokens: { some: {} } } })
  const ceiling = ['view_run', 'manage_queue', 'roll_back_run', 'add_group', 'change_group', 'view_group']
  const bound = on.as(await on.make.token(pk, { ceiling: [...ceiling, `stack:${stack}`] }))
  const act = (id: string, name: string) => bound.post(`/api/v3/blueprints/runs/${id}/${name}/`)
  const release = on.hold()
  const [own, foreign, none] = [
    await apply([group(fresh('group'))], { stack, prefer: 'respond-async' }),
    await apply([group(fresh('group'))], { stack: other, prefer: 'respond-async' }),
    await apply([group(fresh('group'))], { prefer: 'respond-async' }),
  ]
  const answers = [await act(foreign.runId, 'cancel'), await act(none.runId, 'cancel'), await act(own.runId, 'cancel')]
  release()
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 200])
  expect(answers[0]?.detail).toBe('The token is bound to other stacks.')
  for (const options of [{ stack: other }, {}]) {
    const { runId } = await applied(apply([group(fresh('group'))], options))
    expect((await answered(403, act(runId, 'apply'))).detail).toContain(`documents of stack "${stack}" only`)
  }
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

test('a token keeps its bond to a stack when another user views its key', async () => {
  const [stack, identifier] = [fresh(), fresh('token')]
  const owner = await on.make.user({ permissions: ['view_group'] })
  const viewer = await on.make.user({ permissions: ['view_group', 'view_token_key'] })
  await answered(201, owner.post('/api/v3/core/tokens/', { identifier, stacks: [stack] }))
  await answered(200, viewer.get(`/api/v3/core/tokens/${identifier}/view_key/`))
  const { ceiling } = await on.db.token.findUniqueOrThrow({ where: { identifier } })
  expect(ceiling).toEqual(['view_group', 'view_token_key', `stack:${stack}`])
})

test('a token that is bound to a stack neither views nor deletes one of its user that has fewer rights and no bond', async () => {
  const [stack, free, bond] = [fresh(), fresh('token'), fresh('token')]
  const user = await on.make.user({ permissions: ['view_group'] })
  const maker = await on.make.user({ permissions: ['view_group', 'add_token'] })
  const token = (identifier: string) => `/api/v3/core/tokens/${identifier}/`
  await answered(201, maker.post('/api/v3/core/tokens/', { identifier: free, user: user.pk }))
  const bound = on.as(await on.make.token(user.pk, { ceiling: ['view_group', 'add_token', `stack:${stack}`] }))
  for (const refused of [bound.get(`${token(free)}view_key/`), bound.delete(token(free))])
    expect((await answered(403, refused)).detail).toContain('is bound to')
  await answered(201, bound.post('/api/v3/core/tokens/', { identifier: bond }))
  await answered(200, bound.get(`${token(bond)}view_key/`))
  await answered(204, bound.delete(token(bond)))
})

test('a token that is bound to a stack acts on no queue, and its pages offer no act', async () => {
  const { pk } = await on.make.user({ superuser: true })
  const rights = ['view_queue', 'manage_queue', 'view_application']
  const [free, bound] = [
    { token: await on.make.token(pk, { ceiling: rights }) },
    { token: await on.make.token(pk, { ceiling: [...rights, `stack:${fresh()}`] }) },
  ]
  const offers = async (by: typeof free) => {
    const pages = ['/admin/', '/admin/applications/', '/admin/logout/', '/admin/pause/']
    const read = await Promise.all(pages.map((page) => dashboard.get(by, page)))
    return read.map(({ body }) => /Pause the queue|Compare now|pause and resume it/.test(body))
  }
  expect(await offers(free)).toEqual([true, true, true, true])
  expect(await offers(bound)).toEqual([false, false, false, false])
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
