import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { rows, sql } from '../support/sql.ts'
import { bench, oauth2 } from './engine.ts'

const there = await bench()

test('a new row does not stand for a row of another table that has its key', async () => {
  const user = await there.db.user.create({ data: { uuid: randomUUID(), username: 'same keys' } })
  await rows(there.db, sql`SELECT setval('providers_pk_seq', ${user.pk}::bigint, false)`)
  const { changes, key } = await there.apply([
    { ...oauth2('same keys'), id: 'provider' },
    { model: 'service_core.group', identifiers: { name: 'same keys' }, attrs: { users: [user.pk] } },
  ])
  expect(key).toBe(user.pk)
  expect(changes[1]?.fields.users).toEqual({ from: null, to: [user.pk] })
})
