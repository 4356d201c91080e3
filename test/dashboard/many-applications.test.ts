import { expect, test } from 'vitest'
import { answered, dashboardOf, execute, installation, type Made, sql } from '../support/kit.ts'

/** The list of applications where there are many, and what it says of each. */

const permissions = ['view_queue', 'view_application', 'view_radiusprovider', 'view_user']
const service = await installation()
const dashboard = dashboardOf(service)
const operator = await service.make.user({ permissions })

const list = '/admin/applications/'
async function show(as: Made, url: string) {
  const { statusCode, body } = await dashboard.get(as, url)
  expect([url, statusCode]).toEqual([url, 200])
  return body
}
const put = (slug: string, provider = {}) => answered(200, service.admin.submit('radius', slug, { provider }))
const many = (count: number, name: string) =>
  execute(
    service.db,
    sql`INSERT INTO applications (pk, name, slug) SELECT gen_random_uuid(), ${name} || i, ${name} || i FROM generate_series(1, ${count}) i`,
  )
const slugsOf = (body: string) =>
  [...body.matchAll(/href="\/admin\/applications\/([\w-]+)\/"/g)].map(([, slug]) => slug)

test('each is shown with its last change, and with who made it for those who may see users', async () => {
  await put('changed')
  expect(await show(operator, `${list}?text=changed`)).toMatch(/<\/time> by admin<\/td>/)
  const plain = await service.make.user({ permissions: ['view_queue', 'view_application'] })
  const hidden = await show(plain, `${list}?text=changed`)
  expect(/<td class="text" data-label="Last change"><time [^>]+>[^<]+<\/time><\/td>/.test(hidden)).toBe(true)
  expect(hidden.includes('by admin')).toBe(false)
})

test('a change of the provider alone is the last change, for callers who see the provider', async () => {
  await put('of-provider')
  const application = await service.db.application.findUniqueOrThrow({ where: { slug: 'of-provider' } })
  const objects = { has: `service_core.application ${application.pk}` }
  await service.db.auditRow.updateMany({ where: { objects }, data: { at: new Date('2026-01-02') } })
  await put('of-provider', { shared_secret: 'another-secret-of-it' })
  const blind = await service.make.user({ permissions: ['view_queue', 'view_application', 'view_user'] })
  expect(await show(blind, `${list}?text=of-provider`)).toContain('2026-01-02 00:00')
  expect(await show(operator, `${list}?text=of-provider`)).not.toContain('2026-01-02 00:00')
})

test('of more than 5 000 that match none is counted, and pages go on', async () => {
  await many(5_100, 'wide')
  expect(await show(operator, `${list}?text=wide`)).toContain('<h2>5\u202f000+ applications</h2>')
  const names = Array.from({ length: 5_100 }, (_, each) => `wide${each + 1}`).sort()
  expect(slugsOf(await show(operator, `${list}?text=wide&page=70`))).toEqual(names.slice(69 * 50, 70 * 50))
  expect(await show(operator, list)).toMatch(/<h2>5\u202f1\d\d applications<\/h2>/)
  const { json } = await operator.get('/api/v3/core/applications/?search=wide&page_size=1')
  expect(json).toMatchObject({ pagination: { count: 5_100 } })
})
