import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Answer, answered, dashboardOf, type Entry, installation, type SubmitOptions } from '../support/kit.ts'

/** Where a roll back is offered. */

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
const put = (options: SubmitOptions) => idOf(service.admin.submit('radius', slug, options))
const set = (entries: readonly Entry[]) => idOf(service.admin.apply(entries, { name: slug }))

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
