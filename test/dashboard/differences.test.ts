import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  type Answer,
  type Asker,
  answered,
  dashboardOf,
  type Entry,
  installation,
  type SubmitOptions,
  textOf,
} from '../support/kit.ts'

/** How documents of runs differ, and where a roll back is offered. */

let slug: string
const rights = ['view_queue', 'view_run', 'view_application', 'view_radiusprovider', 'view_user', 'view_group']
const service = await installation()
const dashboard = dashboardOf(service)
const operator = await service.make.user({ permissions: [...rights, 'roll_back_run'] })
beforeEach(() => {
  slug = `d-${randomUUID().slice(0, 8)}`
})

const { get } = dashboard
const idOf = async (sent: Promise<Answer>) => (await answered(200, sent)).runId
/** @returns the key of the run */
const put = (options: SubmitOptions, as: Asker = service.admin) => idOf(as.submit('radius', slug, options))
const set = (entries: readonly Entry[], name = slug) => idOf(service.admin.apply(entries, { name }))
const group = (name: string, cost: number) => ({
  ...{ model: 'service_core.group', identifiers: { name }, attrs: { attributes: { cost } } },
})
const differences = async (run: string, as = operator) => (await get(as, `/admin/runs/${run}/differences/`)).body

describe('differences to the run before', () => {
  test('of an application: its fields from -> to, and of a secret only that it changed', async () => {
    const first = await put({ app: { group: 'First' }, provider: { shared_secret: 'the first secret of it' } })
    const second = await put({ app: { group: 'Second' }, provider: { shared_secret: 'the second secret of it' } })
    const third = await put({ app: { group: 'Second' }, provider: { shared_secret: 'the second secret of it' } })
    expect(await differences(first)).toContain('There is no applied run before it')
    const body = await differences(second)
    expect(body).toContain(`href="/admin/runs/${first}/"`)
    expect(textOf(body)).toMatch(/What is different: 2 changed .*a secret: changed.*group First Second/)
    expect(body).not.toMatch(/the (first|second) secret/)
    expect(await differences(third)).toContain('Nothing is different.')
    expect((await get(operator, `/admin/runs/${second}/`)).body).toContain(`href="/admin/runs/${second}/differences/"`)
  })

  test('of a set: entries that are added and removed', async () => {
    const [a, b, c] = [`${slug}-a`, `${slug}-b`, `${slug}-c`]
    const first = await set([group(a, 1), group(b, 1)])
    // Another document that changes one of its objects has another title.
    await set([group(a, 7)], `${slug}-other`)
    const second = await set([group(a, 2), group(c, 1)])
    const body = await differences(second)
    expect(body).toContain(`href="/admin/runs/${first}/"`)
    const text = textOf(body)
    expect(text).toMatch(/What is different: 1 added, 1 changed, 1 removed/)
    expect(text).toMatch(new RegExp(`Removed .*${b} attributes .*Changed .*${a} attributes.cost 1 2`))
    expect(text).toMatch(new RegExp(`Added .*${c}`))
  })

  test('a long one is read page by page', async () => {
    const many = (text: string) =>
      Array.from({ length: 130 }, (_, each) => ({
        ...{ model: 'service_core.group', identifiers: { name: `${slug}-${String(each).padStart(3, '0')}` } },
        attrs: { attributes: { text: text.repeat(300) } },
      }))
    await set(many('<'))
    const run = await set(many('>'))
    const found = new Set<string>()
    let next: string | undefined = `/admin/runs/${run}/differences/`
    while (next !== undefined) {
      const { body }: { body: string } = await get(operator, next)
      for (const [name] of body.matchAll(new RegExp(`${slug}-\\d+`, 'g'))) found.add(name)
      next = /href="([^"]+)">The next ones/.exec(body)?.[1]?.replaceAll('&amp;', '&')
    }
    expect(found.size).toBe(130)
  })

  test('are of runs that the caller may see', async () => {
    const submitter = await service.make.user({
      permissions: [
        ...['view_queue', 'view_application', 'add_application', 'change_application', 'view_flow'],
        ...['view_radiusprovider', 'add_radiusprovider', 'change_radiusprovider'],
      ],
    })
    const others = await put({ app: { group: 'Hidden' }, owner: 'team-d' })
    const own = await put({ app: { group: 'Mine' }, owner: 'team-d' }, submitter)
    expect(await differences(own, submitter)).toContain('There is no applied run before it')
    expect(await differences(own, operator)).toContain('Hidden')
    expect((await get(submitter, `/admin/runs/${others}/differences/`)).statusCode).toBe(404)
  })

  test('says so when a document is not there', async () => {
    const first = await put({ app: { group: 'First' } })
    const second = await put({ app: { group: 'Second' } })
    await service.db.run.update({ where: { id: first }, data: { blueprint: null, document: null } })
    expect(await differences(second)).toContain('They cannot be compared')
  })
})

describe('a roll back is offered', () => {
  const shown = async (as = operator) => (await get(as, `/admin/applications/${slug}/`)).body

  test('at each change of a run whose document is there, to those who may', async () => {
    const first = await put({ app: { group: 'One' } })
    const second = await put({ app: { group: 'Two' } })
    for (const run of [first, second]) expect(await shown()).toContain(`href="/admin/runs/${run}/roll-back/"`)
    await service.db.run.update({ where: { id: first }, data: { blueprint: null, document: null } })
    expect(await shown()).not.toContain(`${first}/roll-back/`)
    const without = await service.make.user({ permissions: rights })
    expect(await shown(without)).not.toContain('roll-back')
  })

  test('of the last document, when it was changed outside', async () => {
    await put({ app: { group: 'One' } })
    const unchanged = await put({ app: { group: 'One' } })
    expect(await shown()).not.toContain('Plan its last document again')
    await service.db.application.updateMany({ where: { slug }, data: { group: 'by SQL' } })
    expect(await shown()).toMatch(new RegExp(`href="/admin/runs/${unchanged}/roll-back/">Plan its last document again`))
    const changed = await set([
      { model: 'service_core.application', identifiers: { slug }, attrs: { meta_publisher: 'set' } },
    ])
    await service.db.application.updateMany({ where: { slug }, data: { group: 'by SQL again' } })
    expect(await shown()).toMatch(new RegExp(`href="/admin/runs/${changed}/roll-back/">Plan its last document again`))
    const without = await service.make.user({ permissions: rights })
    expect(await shown(without)).not.toContain('Plan its last document again')
  })
})
