import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { longestMessage } from '../../src/runs/message.ts'
import { dashboardOf, origin, textOf } from '../support/dashboard.ts'
import { answered, applyPath, installation, type Made, named, until } from '../support/kit.ts'

/** /admin/runs/{id}/roll-back/: the document of a former run is planned, and applied as it was planned. */

let slug: string
const rights = [
  ...['view_queue', 'view_run', 'roll_back_run', 'view_application', 'view_radiusprovider'],
  ...['add_application', 'change_application', 'add_radiusprovider', 'change_radiusprovider', 'view_flow'],
]
const service = await installation({ applyWaitMs: 4_000 })
const dashboard = dashboardOf(service)
const operator = await service.make.user({ permissions: rights })
beforeEach(() => {
  slug = `b-${randomUUID().slice(0, 8)}`
})

/** The header of a link on a page of the same host. */
const followed = { 'sec-fetch-site': 'same-origin' }
const get = (as: Made, url: string, headers: Record<string, string> = followed) => dashboard.get(as, url, headers)
const { post } = dashboard

/** @returns the id of the run */
const put = async (group: string) =>
  (await answered(200, service.admin.submit('radius', slug, { app: { group } }))).runId
const page = (run: string) => `/admin/runs/${run}/roll-back/`
const groupOf = async () => (await service.db.application.findUniqueOrThrow({ where: { slug } })).group
const runsOf = (mode: 'apply' | 'plan') => service.db.run.count({ where: { slug, mode } })

/** The plan that the page leads to. */
async function planned(run: string, as = operator) {
  const { statusCode, headers } = await get(as, page(run))
  expect([statusCode, headers.location]).toEqual([303, expect.stringContaining(`${page(run)}?plan=`)])
  const url = String(headers.location)
  return { url, plan: new URL(url, origin).searchParams.get('plan') ?? '', body: (await get(as, url)).body }
}
/** What is read, without tags. */

describe('a roll back', () => {
  test('shows the plan first, and applies it as the operator, with its message', async () => {
    const first = await put('First')
    await put('Second')
    expect((await get(operator, `/admin/runs/${first}/`)).body).toContain(`href="${page(first)}"`)
    const { url, plan, body } = await service.untouched(() => planned(first))
    expect(textOf(body)).toContain('It would do this: 1 changed, 1 unchanged.')
    expect(textOf(body)).toMatch(/Changed application \S+ group: Second -> First/)
    expect(body.indexOf('Cancel')).toBeLessThan(body.indexOf('Apply this plan'))
    // A reload makes no other plan.
    await get(operator, url)
    expect(await runsOf('plan')).toBe(1)

    const message = 'zurück, „CHG-1042“ <b>'
    const done = await post(operator, page(first), { plan, message })
    expect(done.statusCode).toBe(303)
    expect(done.headers.location).toEqual(expect.stringMatching(/^\/admin\/runs\/[\da-f-]{36}\/$/))
    expect(await groupOf()).toBe('First')
    const { body: ended } = await get(operator, String(done.headers.location))
    expect(ended).toContain('<dt>Message</dt><dd>zurück, „CHG-1042“ &lt;b&gt;</dd>')
    const id = String(done.headers.location).split('/').at(-2) ?? ''
    const { json } = await service.admin.get(`/api/v3/blueprints/runs/${id}/`)
    expect(json).toMatchObject({ message, applied: true, submitter: operator.pk, mode: 'apply', slug, former: first })
    const former = `back to <a href="/admin/runs/${first}/">run ${first.slice(-8)}</a>.`
    expect(ended).toContain(`Rolls ${former}`)
    expect((await get(operator, `/admin/runs/${plan}/`)).body).toContain(`A plan to roll ${former}`)
    expect((await get(operator, '/admin/runs/')).body).toMatch(
      new RegExp(`"run-${id}".*<span class="quiet">roll back<`),
    )

    // The same form again is the same run.
    expect((await post(operator, page(first), { plan, message })).headers.location).toBe(done.headers.location)
    expect(await runsOf('apply')).toBe(3)
  })

  test('applies nothing when something changed after the plan, and shows the new plan', async () => {
    const first = await put('First')
    await put('Second')
    const { plan } = await planned(first)
    await put('Third')
    const { statusCode, body } = await post(operator, page(first), { plan, message: 'kept' })
    expect([statusCode, await groupOf()]).toEqual([412, 'Third'])
    expect(textOf(body)).toContain('Something changed after the plan: nothing was applied.')
    expect(textOf(body)).toMatch(/application \S+ group: Third -> First/)
    expect(body).toContain('value="kept"')
    const [, anew = ''] = /name="plan" value="([^"]+)"/.exec(body) ?? []
    expect(anew).not.toBe(plan)
    expect((await post(operator, page(first), { plan: anew })).statusCode).toBe(303)
    expect(await groupOf()).toBe('First')
  })

  test('says what is not put back, above the button', async () => {
    const submit = async (provider: Record<string, unknown>) =>
      (await service.admin.put(applyPath, await named('radius', slug, { provider }))).runId
    const first = await submit({ shared_secret: undefined, mfa_support: undefined })
    await submit({ shared_secret: 'another secret of it', mfa_support: false })
    const { body } = await planned(first)
    expect(textOf(body)).toMatch(/mfa_support: false -> true/)
    expect(textOf(body)).toContain(`Will not be put back`)
    expect(textOf(body)).toContain(`provider radius "${slug}": shared_secret`)
    expect(body.indexOf('Will not be put back')).toBeLessThan(body.indexOf('Apply this plan'))
    expect(body).not.toContain('another secret of it')
  })

  test('lists all that its run lists as not put back', async () => {
    const submit = async (provider: Record<string, unknown>) => {
      const names = Array.from({ length: 105 }, (_, each) => `${slug}-${each}`)
      const set = await Promise.all(names.map((name) => named('radius', name, { provider })))
      return (await answered(200, service.admin.put('/api/v3/blueprints/', set))).runId
    }
    const first = await submit({ shared_secret: undefined })
    await submit({ shared_secret: 'another secret of it' })
    const as = await service.make.user({ superuser: true, permissions: [] })
    const { plan, body } = await planned(first, as)
    const { json } = await as.get(`/api/v3/blueprints/runs/${plan}/`)
    const [, section = ''] = textOf(body).split('Will not be put back')
    const { not_put_back: left } = json as { not_put_back: string[] }
    expect(left.filter((line) => !section.includes(line))).toEqual([])
    expect(section.match(/and \d+ more/gi)).toEqual(['and 5 more'])
  })

  test('of the newest run shows what it would put back, or that there is nothing', async () => {
    const run = await put('First')
    const same = await planned(run)
    expect(textOf(same.body)).toContain('It would change nothing')
    expect(same.body).not.toContain('Apply this plan')
    await service.db.application.updateMany({ where: { slug }, data: { group: 'by SQL' } })
    const { body } = await planned(run)
    expect(body).toContain('Plan again')
    expect(textOf(body)).toMatch(/It would do this: 1 changed.*group: by SQL -> First/)
  })

  test('puts a field back that the document does not name, and that was changed outside', async () => {
    const body = await named('radius', slug, { app: { group: undefined } })
    const run = (await answered(200, service.admin.put(applyPath, body))).runId
    await service.db.application.updateMany({ where: { slug }, data: { group: 'by SQL' } })
    const { plan, body: text } = await planned(run)
    expect(textOf(text)).toMatch(/It would do this: 1 changed.*group: by SQL -> /)
    expect((await post(operator, page(run), { plan })).statusCode).toBe(303)
    expect(await groupOf()).toBe('')
  })

  test('of many entries shows the first, and the next on the next page', async () => {
    const entries = Array.from({ length: 130 }, (_, each) => ({
      model: 'service_core.group',
      identifiers: { name: `${slug}-${String(each).padStart(3, '0')}` },
      attrs: { attributes: { text: '<'.repeat(300) } },
    }))
    const sent = { version: 1, metadata: { name: slug }, entries }
    const answer = await service.admin.put('/api/v3/blueprints/', sent)
    const run = answer.runId
    await service.db.group.deleteMany({ where: { name: { startsWith: slug } } })
    const as = await service.make.user({ permissions: [...rights, 'add_group', 'change_group', 'view_group'] })
    const { url, body } = await planned(run, as)
    expect(textOf(body)).toContain('It would do this: 130 created.')
    const found = new Set<string>()
    for (let next: string | undefined = url; next !== undefined; ) {
      const { body: shown }: { body: string } = await get(as, next)
      const [, list = ''] = /<h3>Created<\/h3>(.*)<\/details>/s.exec(shown) ?? []
      for (const [name] of list.matchAll(new RegExp(`${slug}-\\d+`, 'g'))) found.add(name)
      next = /href="([^"]+)">The next ones/.exec(shown)?.[1]?.replaceAll('&amp;', '&')
    }
    expect(found.size).toBe(130)
  })
})

test('a plan that waits is shown as such, and with its changes once it is there', async () => {
  const first = await put('First')
  await put('Second')
  const url = `/api/v3/blueprints/runs/${first}/apply/?dry_run=true`
  await service.queue.pause()
  const sent = await answered(202, operator.send({ method: 'POST', url, headers: { Prefer: 'respond-async' } }))
  const plan = String(sent.headers.location).split('/').at(-2) ?? ''
  const shown = () => get(operator, `${page(first)}?plan=${plan}`)
  try {
    const { statusCode, body } = await shown()
    expect(statusCode).toBe(200)
    expect(textOf(body)).toContain('not there yet')
    expect(body.includes('data-live')).toBe(true)
    expect((await get(operator, `/admin/runs/${plan}/`)).statusCode).toBe(200)
    // It is not applied before it is there.
    await post(operator, page(first), { plan })
  } finally {
    await service.queue.resume()
  }
  await until('the plan to be there', async () => (await shown()).body.includes('Apply this plan'))
  expect(await groupOf()).toBe('Second')
})

describe('who may', () => {
  test('needs roll_back_run for the run of others, and every right of the document', async () => {
    const first = await put('First')
    await put('Second')
    const without = await service.make.user({ permissions: rights.filter((each) => each !== 'roll_back_run') })
    const few = await service.make.user({
      permissions: ['view_queue', 'view_run', 'roll_back_run', 'view_application'],
    })
    const blind = await service.make.user({ permissions: rights.filter((each) => each !== 'view_run') })
    expect((await get(without, `/admin/runs/${first}/`)).body).not.toContain('roll-back')
    const found = await Promise.all([without, few, blind].map(async (as) => (await get(as, page(first))).statusCode))
    expect(found).toEqual([403, 403, 404])
    const { plan } = await planned(first)
    for (const as of [without, few, blind]) await post(as, page(first), { plan })
    // The plan of another user is not applied.
    const other = await service.make.user({ permissions: rights })
    expect((await post(other, page(first), { plan })).statusCode).toBe(404)
    expect(await groupOf()).toBe('Second')
    expect(await runsOf('apply')).toBe(2)
  })

  test('own runs, by their submitter', async () => {
    const as = await service.make.user({
      permissions: rights.filter((each) => !/^(view_run|roll_back_run)$/.test(each)),
    })
    const body = await named('radius', slug, { app: { group: 'Mine' } })
    const run =
      String((await as.put(applyPath, body)).headers['content-location'])
        .split('/')
        .at(-2) ?? ''
    await as.submit('radius', slug, { app: { group: 'Later' } })
    const { plan } = await planned(run, as)
    expect((await post(as, page(run), { plan })).statusCode).toBe(303)
    expect(await groupOf()).toBe('Mine')
  })

  test('a right of the document that is missing is said in plain words', async () => {
    const first = await put('First')
    await service.db.application.deleteMany({ where: { slug } })
    const as = await service.make.user({ permissions: rights.filter((each) => each !== 'add_application') })
    const { statusCode, body } = await get(as, page(first))
    expect([statusCode, textOf(body)]).toEqual([403, expect.stringMatching(/not planned.*Why.*add_application/)])
  })

  test('a page of another host changes nothing', async () => {
    const first = await put('First')
    await put('Second')
    const { plan } = await planned(first)
    expect((await post(operator, page(first), { plan }, { origin: 'https://elsewhere.example' })).statusCode).toBe(403)
    expect(await groupOf()).toBe('Second')
  })

  test.each([
    ['follows a link of this host', followed, true],
    ['types the address', { 'sec-fetch-site': 'none' }, true],
    ['comes from another site', { 'sec-fetch-site': 'cross-site' }, false],
    ['comes from another host of this site', { 'sec-fetch-site': 'same-site' }, false],
    ['does not say where it comes from', {}, false],
    ['loads ahead', { ...followed, 'sec-purpose': 'prefetch;prerender' }, false],
  ] as const)('a browser that %s: a plan, or the button that makes one', async (_, headers, isPlanned) => {
    const run = await put('First')
    const { statusCode, body } = await get(operator, page(run), headers)
    expect([statusCode, await runsOf('plan')]).toEqual(isPlanned ? [303, 1] : [200, 0])
    expect(textOf(body).includes('There is no plan yet')).toBe(!isPlanned)
    expect((await post(operator, page(run), {})).headers.location).toContain('?plan=')
  })
})

describe('what is not applied', () => {
  test('a message that is too long or has a line break', async () => {
    const first = await put('First')
    await put('Second')
    const { plan } = await planned(first)
    for (const [message, why] of [
      ['x'.repeat(longestMessage + 1), `at most ${longestMessage} characters`],
      ['two\nlines', 'a character that cannot be shown'],
    ] as const) {
      const { statusCode, body } = await post(operator, page(first), { plan, message })
      expect([statusCode, textOf(body)]).toEqual([400, expect.stringContaining(why)])
    }
    expect(await groupOf()).toBe('Second')
  })

  test('while the queue is paused, both pages say so', async () => {
    const first = await put('First')
    await put('Second')
    const { plan } = await planned(first)
    await service.queue.pause()
    try {
      const asked = await get(operator, page(first))
      expect(asked.statusCode).toBe(503)
      expect(textOf(asked.body)).toMatch(/not planned.*queue is paused/)
      const sent = await post(operator, page(first), { plan, message: 'kept' })
      expect(sent.statusCode).toBe(503)
      expect(textOf(sent.body)).toMatch(/Nothing was applied\. .*queue is paused.*Apply this plan/)
      expect(sent.body).toContain('value="kept"')
    } finally {
      await service.queue.resume()
    }
    expect(await groupOf()).toBe('Second')
  })

  test('a plan of another run of the same title, and a run that is no plan', async () => {
    const first = await put('First')
    const second = await put('Second')
    const { plan } = await planned(first)
    expect((await get(operator, `${page(second)}?plan=${plan}`)).statusCode).toBe(404)
    expect((await post(operator, page(second), { plan })).statusCode).toBe(404)
    expect((await get(operator, `${page(second)}?plan=${second}`)).statusCode).toBe(404)
    expect((await get(operator, `${page(first)}?plan=${plan}`)).statusCode).toBe(200)
    expect(await groupOf()).toBe('Second')
  })

  test('a run whose document is no longer stored', async () => {
    const run = await put('First')
    await service.db.run.update({ where: { id: run }, data: { blueprint: null, document: null } })
    const { statusCode, body } = await get(operator, page(run))
    expect([statusCode, textOf(body)]).toEqual([409, expect.stringContaining('no longer stored')])
  })
})
