import { expect, test } from 'vitest'
import { dashboardOf, installation, type Made } from '../support/kit.ts'

/** Tokens on the first page: those that expired lately, and those that expire next. */

const days = (count: number) => new Date(Date.now() + count * 86_400_000)
const there = await installation()
const dashboard = dashboardOf(there)
const owner = await there.make.user({ permissions: ['view_queue'] })
for (const [identifier, left] of [
  ['next', 3],
  ['yesterday', -1],
  ['last-week', -6],
  ['long-ago', -8],
  ['far-away', 15],
] as const)
  await there.make.token(owner.pk, { identifier, expires: days(left) })

async function tokensSeen(permissions: readonly string[]) {
  const reader = await there.make.user({ permissions: ['view_queue', ...permissions] })
  return rowsOf(reader)
}

async function rowsOf(reader: Made) {
  const { body } = await dashboard.get(reader, '/admin/')
  const table = body.match(/<table[^>]*>(?:(?!<\/table>).)*Access tokens.*?<\/table>/s)?.[0] ?? ''
  const rows = [...table.matchAll(/<tr[^>]*><th scope="row"[^>]*>([^<]+)<\/th>.*?<\/tr>/gs)]
  return { body, rows: rows.map(([row, name]) => [name, row.includes('class="mark warn">expired<')]) }
}

test('those of the last seven days are shown as expired, and named in the sentence', async () => {
  const { body, rows } = await tokensSeen(['view_token'])
  expect(rows).toEqual([
    ['last-week', true],
    ['yesterday', true],
    ['next', false],
  ])
  expect(body).toContain('2 tokens expired')
})

test('are those of the caller alone without view_token', async () => {
  expect((await tokensSeen([])).rows).toEqual([])
  expect((await rowsOf(owner)).rows.map(([name]) => name)).toEqual(['last-week', 'yesterday', 'next'])
})

test('that expired long before do not take the place of those that expire next', async () => {
  const { pk } = await there.make.user()
  for (let each = 0; each < 25; each += 1)
    await there.make.token(pk, { identifier: `rotated-${each}`, expires: days(-2 - each / 100) })
  const names = (await tokensSeen(['view_token'])).rows.map(([name]) => name)
  expect(names).toContain('next')
  expect(names).toContain('yesterday')
  expect(names).toHaveLength(11)
})
