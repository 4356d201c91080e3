import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { answered, dashboardOf, installation, type Made } from '../support/kit.ts'

/** What the page of a run offers, and what it says of other runs of the same objects. */

let name: string
const groups = ['view_group', 'add_group', 'change_group']
const service = await installation()
const dashboard = dashboardOf(service)
const operator = await service.make.user({ permissions: ['view_queue', 'view_run', 'roll_back_run', ...groups] })
beforeEach(() => {
  name = `n-${randomUUID().slice(0, 8)}`
})

async function get(as: Made, url: string) {
  const answer = await dashboard.get(as, url)
  expect(answer.statusCode, url).toBe(200)
  return answer.body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')
}

/** @returns the id of the run */
async function set(places: readonly number[], text: string, as: Pick<Made, 'put'> = service.admin, query = '') {
  const entries = places.map((place) => ({
    ...{ model: 'service_core.group', identifiers: { name: `${name}-${place}` }, attrs: { attributes: { text } } },
  }))
  const answer = await answered(200, as.put(`/api/v3/blueprints/${query}`, { version: 1, metadata: { name }, entries }))
  return answer.runId
}
const upTo = (last: number) => Array.from({ length: last }, (_, each) => each + 1)

describe('the page of a run offers', () => {
  const offer = async (run: string) =>
    /Plan again or roll back to this|Plan it again/.exec(await get(operator, `/admin/runs/${run}/`))?.[0]

  test('to roll back to what was applied, and only to plan again what was not', async () => {
    const run = await set([1], 'first')
    expect(await offer(run)).toBe('Plan again or roll back to this')
    expect(await offer(await set([1], 'second', service.admin, '?dry_run=true'))).toBe('Plan it again')
    for (const state of ['failed', 'cancelled', 'done'] as const) {
      const other = await set([1], state)
      await service.db.run.update({ where: { id: other }, data: { state, applied: false } })
      expect([state, await offer(other)]).toEqual([state, 'Plan it again'])
    }
  })
})

test('the later runs of many objects are those of the first ones, and the page says so', async () => {
  const [few, many] = [await set(upTo(10), 'first'), await set(upTo(11), 'second')]
  await set([1], 'later')
  expect(await get(operator, `/admin/runs/${few}/`)).toContain('Later runs of the same objects')
  expect(await get(operator, `/admin/runs/${many}/`)).toContain('Later runs of its first 10 objects')
  // What stays as it was is not asked for.
  const one = await set(upTo(11), 'second')
  await set([1], 'after')
  expect(await get(operator, `/admin/runs/${one}/`)).toContain('Later runs of the same objects')
})
