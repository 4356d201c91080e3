import { expect, test } from 'vitest'
import type { Prisma } from '../../src/db/generated/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { dashboardOf, installation } from '../support/kit.ts'

/** Runs whose rows hold what cannot be read: SQL or another version wrote it. */

const service = await installation()
const { get } = dashboardOf(service)
const reader = await service.make.user({ permissions: ['view_queue', 'view_run', 'view_application'] })

type Told = Pick<Prisma.RunUncheckedCreateInput, 'changes' | 'options'>

async function recorded(data: Told): Promise<string> {
  const id = uuid7()
  const at = new Date()
  await service.db.run.create({
    data: {
      ...{ id, state: 'done', title: `apply ${id}`, requestId: id, applied: true, startedAt: at, finishedAt: at },
      ...{ logs: ['all of it is so'], ...data },
    },
  })
  return id
}

async function shown(id: string) {
  const [page, list] = [await get(reader, `/admin/runs/${id}/`), await get(reader, '/admin/runs/')]
  const { status, json } = await reader.get(`/api/v3/blueprints/runs/${id}/`)
  const listed = await reader.get('/api/v3/blueprints/runs/?page_size=100')
  expect([page.statusCode, list.statusCode, status, listed.status]).toEqual([200, 200, 200, 200])
  expect(list.body).toContain(id)
  return { body: page.body, json: json as Record<string, unknown> }
}

const good = {
  model: 'service_core.application',
  key: { slug: 'good' },
  action: 'update',
  fields: { name: { from: 'a', to: 'b' } },
}
const options = { createOnly: false, expectedKeys: {} }

test.each([
  ['no list', { a: 1 }],
  ['a text', 'changes'],
  ['elements that are none', [null, 1, 'x', [], {}]],
  ['an element without an action', [{ ...good, action: undefined, key: { slug: 'x' } }]],
  ['another action', [{ ...good, action: 'explode' }]],
  ['a key that is none', [{ ...good, key: 'x' }]],
])('changes that are %s hide nothing else of the run', async (_, changes) => {
  const id = await recorded({ changes, options })
  const { body, json } = await shown(id)
  expect(body).toContain('could not be read: some of its changes.')
  expect(json).toMatchObject({ changes: [], unreadable: ['changes'], logs: ['all of it is so'], owner: null })
})

test('a change that can be read is shown beside one that cannot', async () => {
  const { body, json } = await shown(await recorded({ changes: [5, good, { ...good, fields: { group: 7 } }], options }))
  expect(body).toContain('could not be read: some of its changes.')
  expect(body).toMatch(/Changes: 1 changed/)
  expect(body).toContain('good')
  expect(json.changes).toEqual([good])
})

test('options that are none hide the owner alone, and the run from callers bound to owners', async () => {
  const id = await recorded({ changes: [good], options: ['x'] })
  const { body, json } = await shown(id)
  expect(body).toContain('could not be read: its owner, and what its submitter allowed.')
  expect(json).toMatchObject({ changes: [good], unreadable: ['options'], owner: null, allowed: [] })
  const bound = await service.make.user({ permissions: ['view_run', 'view_application'], owners: ['team-a'] })
  expect((await bound.get(`/api/v3/blueprints/runs/${id}/`)).status).toBe(404)
})

test('of a run that is as it should be, nothing is unreadable', async () => {
  const { body, json } = await shown(await recorded({ changes: [good], options }))
  expect(body).not.toContain('could not be read')
  expect(json).toMatchObject({ changes: [good], unreadable: [] })
})
