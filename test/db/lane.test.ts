import pg from 'pg'
import { expect, test } from 'vitest'
import { openLanes } from '../../src/db/lane.ts'
import { atEnd } from '../support/at-end.ts'
import { freshDatabase } from '../support/database.ts'

const { url } = await freshDatabase()
const lanes = openLanes(() => new pg.Client({ connectionString: url, pipeline: true }), 2)
atEnd(() => lanes.close())

const ask = (text: string) => lanes.use(async (client) => (await client.query(text)).rows[0])
const pid = () => ask('SELECT pg_backend_pid() AS pid')

test('what is asked together goes one way, and each gets its own answer', async () => {
  const answers = await Promise.all([1, 2, 3, 4].map((number) => ask(`SELECT ${number} AS n, pg_backend_pid() AS pid`)))
  expect(answers.map(({ n }) => n)).toEqual([1, 2, 3, 4])
  expect(new Set(answers.map((answer) => answer.pid)).size).toBe(1)
})

test('whoever comes while a statement takes long is not held up by it', async () => {
  const first = await pid()
  let isOver = false
  const slow = ask('SELECT pg_sleep(1), pg_backend_pid() AS pid').then((answer) => {
    isOver = true
    return answer.pid
  })
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await pid()).not.toEqual(first)
  expect(isOver).toBe(false)
  expect(await slow).toBe(first.pid)
  // It answers again: it is the one of choice again.
  expect(await pid()).toEqual(first)
})

test('a statement that fails is the failure of whoever asked it alone', async () => {
  const [failed, well] = await Promise.allSettled([ask('SELECT 1 / 0'), ask('SELECT 1 AS n')])
  expect(failed).toMatchObject({ status: 'rejected', reason: { code: '22012' } })
  expect(well).toMatchObject({ status: 'fulfilled', value: { n: 1 } })
})
