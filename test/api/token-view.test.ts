import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { held } from '../runs/stand.ts'
import { installation, type Made, rows, sql, until } from '../support/kit.ts'

/** The one view of a token's key, beside others who write. */

let ada: Made
let identifier: string
const there = await installation({ workers: 'none' })
beforeEach(async () => {
  identifier = randomUUID()
  ada = await there.make.user()
  expect((await ada.post('/api/v3/core/tokens/', { identifier })).status).toBe(201)
})

const view = async (who: Made) => (await who.get(`/api/v3/core/tokens/${identifier}/view_key/`)).status

const lockWaits = sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
const untilWaiting = (count: number) =>
  until(`${count} to wait for a lock`, async () => (await rows(there.db, lockWaits)).length === count)

test('of two who wait for its row, one gets the key', async () => {
  const release = await held(there, (tx) =>
    rows(tx, sql`SELECT 1 FROM tokens WHERE identifier = ${identifier} FOR UPDATE`),
  )
  const asked = [view(ada), view(ada)]
  await untilWaiting(2)
  await release()
  expect((await Promise.all(asked)).sort()).toEqual([200, 410])
})

test('who viewed it is found in the audit by the identifier, and by the key of the token', async () => {
  expect(await view(ada)).toBe(200)
  const { pk } = await there.db.token.findUniqueOrThrow({ where: { identifier } })
  for (const object of [identifier, pk]) {
    const { json } = await there.admin.get(`/api/v3/core/audit/?object=token:${object}&action=view_key`)
    const { results } = json as { results: { user: { pk: number }; changes: object[] }[] }
    expect(results.map(({ user, changes }) => [user.pk, changes])).toEqual([
      [ada.pk, [{ model: 'service_core.token', key: pk, name: identifier, action: 'view_key', fields: [] }]],
    ])
  }
})

test('a view that gives the token a ceiling waits for changes of rights: its owner may become the last superuser', async () => {
  const viewer = await there.make.user({ permissions: ['view_token_key'] })
  const lock = sql`SELECT pg_advisory_xact_lock('"groups"'::regclass::oid::bigint)::text`
  const release = await held(there, (tx) => rows(tx, lock))
  const viewed = view(viewer)
  await untilWaiting(1)
  await release()
  expect(await viewed).toBe(200)
})
