import { beforeAll, describe, expect, test } from 'vitest'
import { type Asker, applyPath } from '../support/asker.ts'
import { adminToken } from '../support/engine.ts'
import { type EventReader, readEvents } from '../support/events.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import type { Made } from '../support/make.ts'

/** A stream shows the runs that the list shows: the same rows, by the same condition. */

let there: Installation
let url: string
let readers: Readonly<Record<string, string>>
let submitters: readonly Asker[]
let writer: Made
beforeAll(async () => {
  there = await installation()
  url = await there.app.listen({ port: 0, host: '127.0.0.1' })
  const rights = ['add', 'change', 'view'].flatMap((verb) => [`${verb}_application`, `${verb}_radiusprovider`])
  const user = (permissions: string[], owners: string[] = []) => there.make.user({ permissions, owners })
  writer = await user(rights)
  const bound = await user([...rights, 'view_run'], ['team-a'])
  const [auditor, stranger] = [await user(['view_run']), await user([])]
  submitters = [there.admin, writer, bound]
  readers = {
    admin: adminToken,
    writer: writer.token,
    'bound to an owner': bound.token,
    auditor: auditor.token,
    stranger: stranger.token,
    'a token with a ceiling': await there.make.token(1, { ceiling: ['view_application'] }),
  }
})

const path = '/api/v3/blueprints/runs/'
const filters = [
  '',
  '?owner=team-b',
  '?kind=radius',
  '?slug=of-1-team-a',
  '?state=done&mode=apply',
  '?state=failed',
  '?search=of-0',
  '?object=application:of-2-team-a',
  '?reason=invalid',
  '?created_before=2001-01-01T00:00:00Z',
]

/** Some runs of each submitter, for several owners. */
async function submit(): Promise<void> {
  for (const [number, submitter] of submitters.entries())
    for (const owner of [undefined, 'team-a', 'team-b']) {
      const headers = owner === undefined ? {} : { 'gatewright-owner': owner }
      await submitter.put(applyPath, await named('radius', `of-${number}-${owner ?? 'nobody'}`), { headers })
    }
  for (const [number, submitter] of submitters.entries())
    for (const owners of [['team-a', 'team-b'], ['team-a', null], ['team-a']]) {
      const entries = owners.map((owner) => ({
        ...{ model: 'service_core.application', identifiers: { slug: `many-${number}-${owners}-${owner}` } },
        ...{ attrs: { name: 'Many' }, owner },
      }))
      for (const document of [{ owner: 'team-a' }, {}])
        await submitter.put('/api/v3/blueprints/', { version: 1, ...document, entries })
    }
}

const listed = async (token: string, query: string): Promise<string[]> => {
  const answer = await there.as(token).get(`${path}${query}${query === '' ? '?' : '&'}page_size=1000`)
  return (answer.json as { results: { id: string }[] }).results.map(({ id }) => id).sort()
}

test('each reader is sent the runs that its list has, with each filter', async () => {
  const open: [string, string, EventReader][] = []
  // Four streams a token.
  for (const [name, token] of Object.entries(readers))
    for (const query of filters) {
      const limited = open.filter(([, , each]) => each.status === 429).length
      const own = name === 'admin' ? await there.make.token(1) : token
      const reader = await readEvents(`${url}${path}events/${query}`, { token: own })
      if (reader.status === 429) expect(limited).toBeGreaterThanOrEqual(0)
      else open.push([own, query, reader])
    }
  expect(open.length).toBeGreaterThan(20)
  const marker = await readEvents(`${url}${path}events/`, { token: await there.make.token(1) })
  await submit()
  const runs = await listed(adminToken, '')
  expect(runs.length).toBeGreaterThan(6)
  await marker.got('ended', { count: runs.length })
  for (const [token, query, reader] of open) {
    expect(reader.status).toBe(200)
    const wanted = await listed(token, query)
    if (wanted.length > 0) await reader.got('ended', { count: wanted.length })
    const ids = reader.events.filter(({ event }) => event === 'ended').map(({ data }) => String(data.id))
    expect([query, ids.sort()]).toEqual([query, wanted])
    reader.close()
  }
  marker.close()
})

describe('one run', () => {
  test.each(['admin', 'writer', 'bound to an owner', 'auditor', 'stranger', 'a token with a ceiling'])(
    'for %s it is there exactly when the run is',
    async (name) => {
      const token = readers[name] ?? ''
      const compare = async (id: string) => {
        const { status } = await there.as(token).get(`${path}${id}/`)
        const reader = await readEvents(`${url}${path}${id}/events/`, { token })
        expect(reader.status).toBe(status)
        if (status === 404) expect(reader.json).toEqual({ detail: 'There is no such run.', code: 'not_found' })
        else await reader.ended
      }
      const ids = await listed(adminToken, '')
      expect(ids.length).toBeGreaterThan(6)
      for (let at = 0; at < ids.length; at += 2) await Promise.all(ids.slice(at, at + 2).map(compare))
    },
  )
})

test.each([
  ['events/?page=1', 400],
  ['events/?ordering=id', 400],
  ['events/?state=running', 400],
  ['events/?object=x', 400],
  ['6f7e0000-0000-7000-8000-000000000000/events/', 404],
  ['x/events/', 404],
  ['6f7e0000-0000-7000-8000-000000000000/events/?state=done', 400],
])('%s is %i', async (query, status) => {
  const answer = await there.admin.get(`${path}${query}`)
  expect(answer.status).toBe(status)
})

test('without a token, or with a wrong one, there is no stream', async () => {
  for (const token of ['', 'wrong']) expect(await there.as(token).get(`${path}events/`)).toMatchObject({ status: 401 })
})

test('HEAD has the headers of a stream, and ends', async () => {
  const [run] = await listed(adminToken, '')
  for (const url of [`${path}events/`, `${path}${run}/events/`]) {
    const answer = await there.admin.send({ method: 'HEAD', url })
    expect(answer).toMatchObject({ status: 200, text: '', headers: { 'content-type': 'text/event-stream' } })
  }
  const none = `${path}6f7e0000-0000-7000-8000-000000000000/events/`
  expect(await there.admin.send({ method: 'HEAD', url: none })).toMatchObject({ status: 404 })
})

describe('while impersonating', () => {
  test("it is the effective user's stream, and leaves an audit row", async () => {
    const supporter = await there.make.user({ permissions: ['impersonate'] })
    const headers = { 'impersonate-user': writer.username }
    const reader = await readEvents(`${url}${path}events/`, { token: supporter.token, headers })
    const before = await there.db.auditRow.count({ where: { realPk: supporter.pk, action: 'read' } })
    expect([reader.status, before]).toEqual([200, 1])
    await there.admin.put(applyPath, await named('radius', 'not-of-the-writer'))
    await writer.put(applyPath, await named('radius', 'of-the-writer'))
    const [ended] = await reader.got('ended')
    expect(ended?.data).toMatchObject({ submitter_name: writer.username, slug: 'of-the-writer' })
    reader.close()
  })
})
