import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Asker, answered, installation, objects } from '../support/kit.ts'

/** `If-Match` and `If-None-Match` of what changes or deletes one object whose reads have an `ETag`. */

const there = await installation()

const api = '/api/v3/core/'

async function newToken(): Promise<string> {
  const identifier = `t-${randomUUID()}`
  await there.admin.post(`${api}tokens/`, { identifier })
  return `${api}tokens/${identifier}/`
}
const newGroup = async () => `${api}groups/${(await there.make.group({ users: [1] })).pk}/`
async function newApplication(): Promise<string> {
  const slug = `a-${randomUUID().slice(0, 8)}`
  await there.admin.submit('ldap', slug)
  return `${api}applications/${slug}/`
}
/** Past the API. */
const changes = {
  token: (name: string) => there.db.token.update({ where: { identifier: name }, data: { description: randomUUID() } }),
  group: (pk: string) => there.db.group.update({ where: { pk }, data: { attributes: { a: randomUUID() } } }),
  application: (slug: string) =>
    there.db.application.update({ where: { slug }, data: { metaPublisher: randomUUID() } }),
}

type Noun = keyof typeof changes
const cases: [act: string, noun: Noun, method: 'PATCH' | 'DELETE', make: () => Promise<string>][] = [
  ['a token is changed', 'token', 'PATCH', newToken],
  ['a token is deleted', 'token', 'DELETE', newToken],
  ['a group is changed', 'group', 'PATCH', newGroup],
  ['an application is deleted', 'application', 'DELETE', newApplication],
]

const bodies = { token: { description: 'changed' }, group: { attributes: { changed: true } }, application: undefined }
const tagOf = async (url: string, by: Asker = there.admin) => (await by.get(url)).headers.etag ?? ''
const other = '"Jhg7nK2T6yq8eE3xH0b7Qm1cV5rL9sW4dZ2uF6aP0Yk"'

describe.each(cases)('%s', (_, noun, method, make) => {
  const act = (url: string, headers: Record<string, string>, by: Asker = there.admin) => {
    const body = method === 'PATCH' && {
      payload: JSON.stringify(bodies[noun]),
      headers: { 'content-type': 'application/json', ...headers },
    }
    return by.send({ method, url, headers, ...body })
  }
  const done = method === 'PATCH' ? 200 : 204

  async function refused(url: string, headers: Record<string, string>): Promise<string> {
    const before = await objects(there.db)
    const answer = await answered(412, act(url, headers), { code: 'precondition_failed' })
    expect(await objects(there.db)).toEqual(before)
    return answer.detail
  }

  test('as it was read', async () => {
    for (const form of [(tag: string) => tag, (tag: string) => `${other}, ${tag}`, () => '*']) {
      const url = await make()
      expect(await act(url, { 'if-match': form(await tagOf(url)) })).toMatchObject({ status: done })
    }
  })

  test('not when it was changed since, and the answer says what to do', async () => {
    const url = await make()
    const read = await tagOf(url)
    await changes[noun](url.split('/').at(-2) ?? '')
    expect(await refused(url, { 'if-match': read })).toBe(
      `The ${noun} is not as \`If-Match\` has it: read it again, and send the new \`ETag\` if you still want to change it.`,
    )
    expect(await act(url, { 'if-match': await tagOf(url) })).toMatchObject({ status: done })
  })

  test('not with a weak tag, or with what is none', async () => {
    const url = await make()
    for (const header of [`W/${await tagOf(url)}`, 'x', '', other]) await refused(url, { 'if-match': header })
  })

  test('only when it is not as If-None-Match has it', async () => {
    const url = await make()
    const read = await tagOf(url)
    expect(await refused(url, { 'if-none-match': '*' })).toContain(`The ${noun} exists`)
    expect(await refused(url, { 'if-none-match': `${other}, W/${read}` })).toContain(`The ${noun} is still as`)
    expect(await act(url, { 'if-none-match': other })).toMatchObject({ status: done })
  })

  test('what is not there is a 404', async () => {
    const [, missing = ''] = /^(.*\/)[^/]+\/$/.exec(await make()) ?? []
    for (const headers of [{ 'if-match': other }, { 'if-match': '*' }, { 'if-none-match': '*' }])
      expect(await act(`${missing}${randomUUID()}/`, headers)).toMatchObject({ status: 404 })
  })

  test('by one of many who read the same', async () => {
    const url = await make()
    const headers = { 'if-match': await tagOf(url) }
    const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await act(url, headers)).status))
    const late = method === 'PATCH' ? 412 : 404
    expect(statuses.sort()).toEqual([done, ...Array.from({ length: 7 }, () => late)])
  })
})

describe('what is written has the tag that a read of it has', () => {
  test('a token', async () => {
    const identifier = `t-${randomUUID()}`
    const made = await there.admin.post(`${api}tokens/`, { identifier })
    const url = `${api}tokens/${identifier}/`
    expect(made).toMatchObject({ status: 201, headers: { etag: await tagOf(url), 'cache-control': 'no-store' } })
    const changed = await there.admin.patch(url, { description: 'b' }, { ifMatch: made.etag })
    expect(changed).toMatchObject({ status: 200, headers: { etag: await tagOf(url) } })
    expect(changed.headers.etag).not.toBe(made.headers.etag)
  })

  test('a group', async () => {
    const made = await there.admin.post(`${api}groups/`, { name: randomUUID(), users: [1], attributes: { a: 1 } })
    const url = `${api}groups/${(made.json as { pk: string }).pk}/`
    expect(made).toMatchObject({ status: 201, headers: { etag: await tagOf(url) } })
    const changed = await there.admin.patch(url, { users: [] }, { ifMatch: made.etag })
    expect(changed).toMatchObject({ status: 200, headers: { etag: await tagOf(url) } })
  })
})

test('a caller who changes what it may not list has the tag of its last change', async () => {
  const ada = await there.make.user()
  await ada.post(`${api}tokens/`, { identifier: 'of-ada' })
  const helper = await there.make.user({ permissions: ['change_token'] })
  const url = `${api}tokens/of-ada/`
  expect((await helper.get(url)).status).toBe(404)
  const { etag = '' } = (await helper.patch(url, { description: 'a' })).headers
  expect(await helper.patch(url, { description: 'b' }, { ifMatch: etag })).toMatchObject({ status: 200 })
  expect(await helper.patch(url, { description: 'c' }, { ifMatch: etag })).toMatchObject({ status: 412 })
})

test('a caller who may not read the object is told so, and it stays', async () => {
  const url = await newApplication()
  const read = await tagOf(url)
  const remover = await there.make.user({ permissions: ['delete_application'] })
  await answered(412, remover.send({ method: 'DELETE', url, headers: { 'if-match': read } }), {
    detail: expect.stringMatching(/^You may not read the application, so `If-Match` cannot be compared/),
  })
  expect((await there.admin.get(url)).status).toBe(200)
})

describe('a group is read', () => {
  test('as the list shows it, and not again while it is the same', async () => {
    const { pk, name } = await there.make.group({ users: [1], roles: [(await there.make.role(['view_user'])).pk] })
    const url = `${api}groups/${pk}/`
    const list = await there.admin.get(`${api}groups/?name=${encodeURIComponent(name)}`)
    const { status, json, headers } = await there.admin.get(url)
    expect([status, json]).toEqual([200, (list.json as { results: unknown[] }).results[0]])
    const again = await there.admin.get(url, { headers: { 'if-none-match': headers.etag ?? '' } })
    expect(again).toMatchObject({ status: 304, text: '' })
    await answered(200, there.admin.get(url.toUpperCase().replace('/API/V3/CORE/GROUPS/', `${api}groups/`)))
  })

  test('without its users, by their keys: that tag counts for a change too', async () => {
    const url = await newGroup()
    const { json, headers } = await there.admin.get(`${url}?include_users=false`)
    expect(json).toMatchObject({ users: [1], users_obj: null })
    expect(headers.etag).not.toBe(await tagOf(url))
    const sent = { 'if-match': headers.etag ?? '' }
    expect(await there.admin.patch(url, bodies.group, { headers: sent })).toMatchObject({ status: 200 })
    expect(await there.admin.patch(url, bodies.group, { headers: sent })).toMatchObject({ status: 412 })
  })

  test('with its thousands of members, each once', async () => {
    const { pk } = await there.make.group()
    await there.db.user.createMany({
      data: Array.from({ length: 1_500 }, (_, at) => ({ uuid: randomUUID(), username: `member-${at}`, name: '' })),
    })
    const members = await there.db.user.findMany({ where: { username: { startsWith: 'member-' } } })
    await there.db.membership.createMany({ data: members.map(({ pk: userPk }) => ({ groupPk: pk, userPk })) })
    const { json } = await there.admin.get(`${api}groups/${pk}/`)
    const { users, users_obj } = json as { users: number[]; users_obj: { pk: number }[] }
    expect(users).toEqual(members.map((each) => each.pk).sort((one, two) => one - two))
    expect(users_obj.map((each) => each.pk)).toEqual(users)
  })
})
