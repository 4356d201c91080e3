import { expect, test } from 'vitest'
import { z } from 'zod'
import { answered, installation, rows, sql } from '../support/kit.ts'

/** Attributes are the users' own JSON: none of it may mean something to what reads it. */

const on = await installation({ workers: 'none' })
const ada = await on.make.user()

const texts = [
  '{"__proto__": {"a": 1}, "constructor": null, "toJSON": "x", "then": 1}',
  '{"$type": "Json", "value": "{}"}',
  '{"a": {"$type": "DateTime", "value": "2026-01-01T00:00:00.000Z"}, "b": [{"$type": "BigInt", "value": "1"}]}',
  '{"10": "x", "9": ["2026-01-01T00:00:00Z", "\\u2028", "\\"", ""], "e": 1e21, "f": -0.1, "g": 123456789012}',
  '{"settings": {"__proto__": {"isAdmin": true}, "pk": 1, "deep": [[[{"": {}}]]]}}',
]

/** Sorts by keys, whose order JSON leaves open; `__proto__` is a key like others. */
const flat = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.entries(value)
        .map(([name, inner]) => [name, flat(inner)])
        .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1))
    : value

const shown = z.object({ results: z.array(z.record(z.string(), z.unknown())) })

async function ask(path: string): Promise<Record<string, unknown>> {
  const { text } = await answered(200, on.admin.get(`/api/v3${path}`))
  return shown.parse(JSON.parse(text)).results[0] ?? {}
}

test.each(texts)('%s comes back as it is, wherever it is shown', async (text) => {
  await rows(on.db, sql`UPDATE users SET attributes = ${text}::jsonb WHERE pk = ${ada.pk}`)
  await rows(on.db, sql`UPDATE groups SET attributes = ${text}::jsonb WHERE pk = ${ada.group}::uuid`)
  const expected = flat(JSON.parse(text))
  const user = await ask(`/core/users/?username=${ada.username}`)
  expect(flat(user.attributes)).toEqual(expected)
  expect(flat(Object(user.groups_obj)[0].attributes)).toEqual(expected)
  const group = await ask(`/core/groups/?members_by_pk=${ada.pk}`)
  expect(flat(group.attributes)).toEqual(expected)
  expect(flat(Object(group.users_obj)[0].attributes)).toEqual(expected)
  const me = JSON.parse((await ada.get('/api/v3/core/users/me/')).text)
  expect(flat(me.user.settings)).toEqual(flat(JSON.parse(text).settings ?? {}))
})
