import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { assets } from '../../src/dashboard/assets.ts'
import { pagesOf } from '../../src/dashboard/runs/run.ts'
import type { Prisma } from '../../src/db/generated/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { startOf } from '../../src/runs/at-work.ts'
import { sealedColumn } from '../../src/runs/ledger.ts'
import { applyPath, dashboardOf, installation, named, until } from '../support/kit.ts'

/** The pages of runs: what each caller sees, and how much. */

const service = await installation({ applyWaitMs: 60_000 })
const dashboard = dashboardOf(service)
const viewer = await service.make.user({ permissions: ['view_queue', 'view_application'] })
const reader = await service.make.user({ permissions: ['view_queue', 'view_run', 'view_application'] })

const { get } = dashboard

/** A run that has ended, past the worker. */
async function recorded(data: Partial<Prisma.RunUncheckedCreateInput> = {}): Promise<string> {
  const id = uuid7()
  const at = new Date()
  await service.db.run.create({
    data: {
      ...{ id, state: 'done', title: `apply radius ${id}`, kind: 'radius', requestId: `request-${id}`, applied: true },
      ...{ options: { createOnly: false, expectedKeys: {} }, startedAt: at, finishedAt: at, logs: [], ...data },
    },
  })
  return id
}
const underOwner = (owner: string) => ({ options: { createOnly: false, expectedKeys: {}, owner } })
const failed = { state: 'failed', applied: false, reason: 'server_error' } as const
const listed = (body: string) => [...body.matchAll(/<tr id="run-([\da-f-]{36})"/g)].map(([, id = '']) => id)

describe('sight', () => {
  test("without view_run, no page shows anything of others' runs, whatever is asked", async () => {
    const marker = `marker-${uuid7()}`
    const other = await recorded({
      ...{
        ...failed,
        cause: `${marker}-cause`,
        logs: [`${marker}-log`],
        title: `${marker}-title`,
        slug: `${marker}-slug`,
      },
      ...{ requestId: `${marker}-request`, ...underOwner(`${marker}-owner`), createdAt: new Date(Date.now() + 60_000) },
    })
    const own = await recorded({
      ...failed,
      submitterPk: viewer.pk,
      slug: `${marker}-slug`,
      cause: 'hidden-cause-of-own',
    })
    const { username } = reader
    const asked = [
      ...[
        '',
        `who=${username}`,
        `owner=${marker}-owner`,
        `request=${marker}-request`,
        `text=${marker}`,
        'outcome=failed',
      ],
      ...['group=cause', 'group=cause&outcome=failed', 'kind=radius', `object=application:${marker}-slug`],
    ]
    const urls = [...['/admin/', `/admin/runs/${own}/`], ...asked.map((query) => `/admin/runs/?period=all&${query}`)]
    for (const url of urls) {
      const { statusCode, body } = await get(viewer, url)
      // What was asked stands in the form.
      const shown = body.replace(/value="[^"]*"|href="[^"]*"/g, '').replaceAll(`${marker}-slug`, '')
      expect([url, statusCode, shown.includes(marker), shown.includes('hidden-cause-of-own')]).toEqual([
        url,
        200,
        false,
        false,
      ])
      expect(body).not.toContain(other)
    }
    for (const url of [`/admin/runs/${other}/`, `/admin/runs/${other}/document/`])
      expect((await get(viewer, url)).statusCode).toBe(404)
    expect(listed((await get(viewer, '/admin/runs/?period=all')).body)).toEqual([own])

    const seen = await get(reader, '/admin/runs/?period=all&outcome=failed&group=cause')
    expect(seen.body).toContain(`${marker}-cause`)
    expect((await get(reader, `/admin/runs/${other}/`)).body).toContain(`${marker}-log`)
  })

  test('a caller bound to owners sees the runs of these, as in the API', async () => {
    const permissions = ['view_queue', 'view_run', 'view_application']
    const bound = await service.make.user({ permissions, owners: ['team-a'] })
    const theirs = await recorded(underOwner('team-a'))
    const others = await recorded(underOwner('team-b'))
    const none = await recorded()
    expect(listed((await get(bound, '/admin/runs/?period=all')).body)).toEqual([theirs])
    const { json } = await bound.get('/api/v3/blueprints/runs/')
    expect((json as { results: { id: string }[] }).results.map(({ id }) => id)).toEqual([theirs])
    const found = await Promise.all(
      [theirs, others, none].map(async (id) => (await get(bound, `/admin/runs/${id}/`)).statusCode),
    )
    expect(found).toEqual([200, 404, 404])
  })

  test('runs are found by an object only for those who may view it', async () => {
    expect((await service.admin.submit('radius', 'seen-object')).status).toBe(200)
    const plain = await service.make.user({ permissions: ['view_queue', 'view_run'] })
    const url = '/admin/runs/?period=all&object=application:seen-object'
    expect(listed((await get(reader, url)).body)).toHaveLength(1)
    expect(listed((await get(plain, url)).body)).toEqual([])
  })
})

describe('/admin/runs/', () => {
  test('its pages have each run once, the newest first, also of one millisecond', async () => {
    const owner = `pages-${uuid7()}`
    const at = new Date()
    const made: string[] = []
    for (let each = 0; each < 120; each += 1)
      made.push(await recorded({ ...underOwner(owner), createdAt: new Date(at.getTime() - Math.floor(each / 40)) }))
    const seen: string[] = []
    let url: string | undefined = `/admin/runs/?owner=${owner}`
    for (let page = 0; url !== undefined && page < 5; page += 1) {
      const { body } = await get(reader, url)
      expect(body).toContain('120 runs of the last hour')
      seen.push(...listed(body))
      const [, next] = /href="([^"]+)">Older</.exec(body) ?? []
      url = next?.replaceAll('&amp;', '&')
    }
    expect(seen).toHaveLength(120)
    expect(new Set(seen)).toEqual(new Set(made))
    const rows = await service.db.run.findMany({
      where: { id: { in: seen } },
      orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    })
    expect(seen).toEqual(rows.map(({ id }) => id))
  })

  test('counts no further than a thousand, and shows the last hour unless it is asked for more', async () => {
    const owner = `many-${uuid7()}`
    const at = new Date(Date.now() - 2 * 3_600_000)
    await service.db.run.createMany({
      data: Array.from({ length: 1_001 }, () => ({
        ...{
          id: uuid7(),
          title: 'many',
          requestId: 'x',
          state: 'done' as const,
          applied: true,
          createdAt: at,
          finishedAt: at,
        },
        ...underOwner(owner),
      })),
    })
    expect((await get(reader, `/admin/runs/?owner=${owner}`)).body).toContain('0 runs of the last hour')
    const { body } = await get(reader, `/admin/runs/?owner=${owner}&period=day`)
    expect(body).toContain('1\u202f000+ runs of the last day')
  })

  test.each([
    ['object=x', 'Object: Must be a kind and a name'],
    ['period=century', 'Period: Must be one of'],
    ['outcome=good', 'Outcome: Must be one of'],
    ['before=yesterday', 'Is not the place of a page.'],
    ['who=a&who=b', 'Who: Send it once.'],
    [`text=${'a%20'.repeat(9)}`, 'Words of the title: Must be at most 8 words.'],
    ['owner=%00', 'Owner: Has a character that cannot be stored.'],
    [`owner=${'x'.repeat(401)}`, 'Owner: Must be at most 400 characters.'],
  ])('says what is wrong with %s', async (query, why) => {
    const { statusCode, body } = await get(reader, `/admin/runs/?${query}`)
    expect([statusCode, body]).toEqual([400, expect.stringContaining(why)])
  })

  test('an address that it does not know is a page, and 400', async () => {
    const { statusCode, headers } = await get(reader, '/admin/runs/?nonsense=1')
    expect([statusCode, headers['content-type']]).toEqual([400, 'text/html; charset=utf-8'])
  })

  test('calls each outcome as the page of the run does, and finds it by that word', async () => {
    const owner = `outcomes-${uuid7()}`
    const change = (action: string) => ({
      changes: [{ model: 'service_core.group', key: { name: 'a' }, action, fields: {} }],
    })
    const of: Record<string, Partial<Prisma.RunUncheckedCreateInput>> = {
      applied: change('create'),
      unchanged: change('unchanged'),
      refused: { applied: false, reason: 'conflict' },
      failed,
      cancelled: { state: 'cancelled', applied: null, reason: 'cancelled' },
      planned: { mode: 'plan', applied: false },
      unknown: {
        state: 'queued',
        applied: null,
        startedAt: null,
        finishedAt: null,
        enqueuedAt: new Date(Date.now() + 3_600_000),
      },
    }
    const lookOf: Record<string, string> = {
      ...{ applied: 'good', unchanged: 'same', planned: 'open', unknown: 'open|warn' },
      ...{ refused: 'warn', cancelled: 'warn', failed: 'bad' },
    }
    for (const [outcome, data] of Object.entries(of)) {
      const id = await recorded({ ...underOwner(owner), ...data })
      const { body } = await get(reader, `/admin/runs/?owner=${owner}&outcome=${outcome}`)
      expect([outcome, listed(body)]).toEqual([outcome, [id]])
      const word = outcome === 'unknown' ? 'waiting' : outcome
      // One that waits becomes late.
      const marked = new RegExp(`class="mark (?:${lookOf[outcome]})">${word}<`)
      expect([outcome, marked.test(body)]).toEqual([outcome, true])
      expect([outcome, marked.test((await get(reader, `/admin/runs/${id}/`)).body)]).toEqual([outcome, true])
    }
  })

  test('a failure that a later run repaired is not called failing', async () => {
    const slug = `mended-${uuid7().slice(-12)}`
    const id = await recorded({ ...failed, slug, cause: `cause of ${slug}`, createdAt: new Date(Date.now() - 1_000) })
    const url = `/admin/runs/?outcome=failed&group=cause`
    const row = async (page = url) =>
      new RegExp(`cause of ${slug}.*?</tr>`, 's').exec((await get(reader, page)).body)?.[0]
    expect(await row()).toContain('1 still failing')
    const later = await recorded({ slug })
    for (const page of [url, '/admin/']) expect(await row(page)).toContain('>repaired<')
    const { body } = await get(reader, `/admin/runs/${id}/`)
    expect(body).toContain(`Repaired by <a href="/admin/runs/${later}/">`)
  })
})

describe('the page of a run', () => {
  const actions = ['create', 'update', 'unchanged', 'delete']
  const changesOf = (entries: number) =>
    Array.from({ length: entries }, (_, each) => ({
      model: 'service_core.application',
      key: { slug: `app-${each}-${'&'.repeat(each % 50)}` },
      action: actions[each % 4] ?? 'create',
      fields:
        each % 4 === 2
          ? {}
          : Object.fromEntries(
              ['name', 'group', 'icon'].map((name) => [name, { from: '<'.repeat(each % 400), to: 'x' }]),
            ),
    }))

  test('of 10 000 entries is read part by part, and so is its document', async () => {
    const changes = changesOf(10_000)
    const id = uuid7()
    const text = `version: 1\nentries:\n${changes.map(({ key }) => `  - model: service_core.application\n    identifiers: {slug: "${key.slug}"}\n`).join('')}`
    const blueprint = service.engine.keyring.seal(text, sealedColumn(id, 'blueprint'))
    await recorded({ id, changes, logs: changes.map(({ key }) => `${key.slug} ${'"'.repeat(500)}`), blueprint })
    for (const part of ['', '?start=2500', '?start=5000', '?start=9999', 'document/', 'document/?page=5']) {
      const { statusCode, body } = await get(reader, `/admin/runs/${id}/${part}`)
      expect([part, statusCode]).toEqual([part, 200])
      expect(body).toMatch(/of 10\u202f000|Page \d of/)
    }
    expect((await get(reader, `/admin/runs/${id}/document/?page=9999`)).statusCode).toBe(404)
  })

  test('of many entries shows all of them, part by part, deletions first', async () => {
    const id = await recorded({ changes: changesOf(800) })
    const seen: string[] = []
    let url: string | undefined = `/admin/runs/${id}/`
    for (let pages = 0; url !== undefined && pages < 100; pages += 1) {
      const { body } = await get(reader, url)
      seen.push(...[...body.matchAll(/>application (app-\d+)-/g)].map(([, name = '']) => name))
      url = /href="([^"]+)">The next ones/.exec(body)?.[1]
    }
    const number = (name = '') => Number(name.slice(4)) % 4
    expect(new Set(seen).size).toBe(800)
    expect(seen).toHaveLength(800)
    expect([seen[0], seen[200], seen[400], seen[600]].map(number)).toEqual([3, 1, 0, 2])
  })

  test('of few entries with many long fields is cut, and says so', async () => {
    const fields = Object.fromEntries(
      Array.from({ length: 200 }, (_, each) => [`field_${each}`, { from: null, to: '<'.repeat(5_000) }]),
    )
    const changes = Array.from({ length: 50 }, (_, each) => ({
      model: 'service_core.group',
      key: { name: `g${each}` },
      action: 'update',
      fields,
    }))
    const { body } = await get(reader, `/admin/runs/${await recorded({ changes })}/`)
    expect(body).toContain('and 170 lines more, in the API')
  })

  test('shows changes from -> to, the document masked, and no generated value', async () => {
    const secret = `secret-${uuid7()}`
    const body = await named('oauth2', 'masked', { provider: { client_secret: secret, client_type: 'confidential' } })
    expect((await service.admin.put(applyPath, body)).status).toBe(200)
    const { id } = await service.db.run.findFirstOrThrow({ where: { slug: 'masked' } })
    const admin = await service.make.user({ superuser: true })
    const page = (await get(admin, `/admin/runs/${id}/`)).body
    expect(page).toContain('client_secret: a secret<')
    const document = (await get(admin, `/admin/runs/${id}/document/`)).body
    expect(document).toContain('client_secret:\n        set: true')
    expect(page + document).not.toContain(secret)
  })
})

test('what holds a run up is named: another session, or another run', async () => {
  await service.admin.submit('radius', 'held')
  const admin = await service.make.user({ superuser: true })
  const other = service.as(admin.token)
  const change = async (name: string, as = service.admin) =>
    as.submit('radius', 'held', { app: { name } }).catch(() => null)
  const release = Promise.withResolvers<void>()
  const locking = service.db.$transaction(
    async (tx) => {
      await tx.$executeRawUnsafe('SET LOCAL idle_in_transaction_session_timeout = 0')
      await tx.application.updateMany({ where: { slug: 'held' }, data: { metaDescription: 'held' } })
      await release.promise
    },
    { timeout: 100_000 },
  )
  const sent = [change('one')]
  await service.queued(1)
  sent.push(change('two'), change('three', other))
  try {
    const now = async () => (await get(admin, '/admin/')).body
    const row = (body: string, what: RegExp) => what.test(body)
    await until('the run to be shown with the session that blocks it', async () =>
      row(await now(), /blocked<\/span> by another session, of another login: process \d+/),
    )
    await until('the other run to be shown with the run that blocks it', async () =>
      row(await now(), /blocked<\/span> by another run: <a href="\/admin\/runs\//),
    )
    await until('a run to be shown as blocked between its attempts', async () =>
      row(await now(), />none<.*blocked<\/span>: a lock was not given in time: process \d+/),
    )
    const { id } = await service.db.run.findFirstOrThrow({ where: { slug: 'held', state: 'queued' } })
    const page = async () => (await get(admin, `/admin/runs/${id}/`)).body
    const blocked =
      /class="summary warn">.*Not applied yet: a lock .*process \d+.*class="mark warn">blocked<\/span> for \d.*Its worker is process \d+ of PostgreSQL/s
    await until('the page of the run to name its blocker, its age and its worker', async () =>
      row(await page(), blocked),
    )
    expect((await get(admin, '/admin/runs/')).body).toContain('class="mark warn">blocked<')
    // Those who do not see the run see no line of it.
    expect((await get(viewer, '/admin/')).body).not.toContain('apply radius held')
  } finally {
    release.resolve()
    await locking
    await Promise.all(sent)
  }
})

test.each([
  ["UPDATE tokens SET key_hash = 'secret' WHERE pk = 1", 'UPDATE tokens SET key_hash'],
  ['LOCK TABLE applications', 'LOCK TABLE applications'],
  ["ALTER ROLE x PASSWORD 'secret'", 'ALTER ROLE x PASSWORD'],
  ['select 42', 'select'],
  ['SELECT $$secret$$', 'SELECT'],
  ['/* secret */ SELECT', null],
  ['', null],
])('of the statement %j no value is shown', (statement, start) => {
  expect(startOf(statement)).toBe(start)
})

test.each([
  ['', ['']],
  ['a\n', ['a\n']],
  ['x'.repeat(90_000), ['x'.repeat(40_000), 'x'.repeat(40_000), 'x'.repeat(10_000)]],
])('a document is cut into pages that are all of it', (text, pages) => {
  expect(pagesOf(text)).toEqual(pages)
})

test('script and style are small, and may be kept for good', async () => {
  const { script, style } = assets
  expect(gzipSync(script.text).length).toBeLessThan(12_000)
  expect(gzipSync(style.text).length).toBeLessThan(8_000)
  const answer = await dashboard.send({ method: 'GET', url: script.path })
  expect(answer.headers).toMatchObject({ 'cache-control': 'public, max-age=31536000, immutable' })
  expect(answer.body).toBe(script.text)
  expect((await dashboard.send({ method: 'GET', url: '/admin/assets/other.js' })).statusCode).toBe(404)
})
