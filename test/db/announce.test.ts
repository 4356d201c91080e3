import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openAnnouncer, textsIn } from '../../src/db/announce.ts'
import { type Db, type Tx, transaction } from '../../src/db/client.ts'
import { sql, unprepared } from '../../src/db/sql.ts'
import { freshDatabase } from '../support/database.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'

const channel = 'test'
let url: string
let db: Db
let heard: readonly string[]

beforeAll(async () => {
  ;({ url, db } = await freshDatabase({ max: 8 }))
})
beforeEach(async () => {
  heard = await listen(url, channel)
})

const announcing = (text: string) => (tx: Tx) => Promise.resolve(tx.announce({ channel, text }))
/** What was heard until now: announcements arrive in the order of commits. */
async function heardSoFar(): Promise<string[]> {
  await db.query(sql`SELECT pg_notify(${channel}, 'last')`)
  await until(() => heard.includes('last'), { what: 'the last announcement' })
  return heard.filter((text) => text !== 'last')
}

describe('an announcement', () => {
  test('is heard after the commit, and not before', async () => {
    await transaction(db, async (tx) => {
      await announcing('done')(tx)
      expect(await heardSoFar()).toEqual([])
    })
    await until(() => heard.includes('done'), { what: 'it' })
  })

  test('of a transaction that is given up is never heard', async () => {
    const given = transaction(db, async (tx) => {
      await announcing('nothing')(tx)
      throw new Error('given up')
    })
    await expect(given).rejects.toThrow('given up')
    expect(await heardSoFar()).toEqual([])
  })

  test('that cannot be made takes nothing back: it is no part of the transaction', async () => {
    await db.pool.query('CREATE TABLE notes (pk int)')
    await transaction(db, async (tx) => {
      await tx.query(unprepared('INSERT INTO notes VALUES (1)', []))
      await announcing('x'.repeat(9_000))(tx)
    })
    expect(await db.query(unprepared('SELECT pk FROM notes', []))).toEqual([{ pk: 1 }])
    await transaction(db, announcing('next'))
    await until(() => heard.includes('next'), { what: 'the next one' })
  })

  test('of each of many transactions is heard, and those that end together are one', async () => {
    const texts = Array.from({ length: 100 }, (_, number) => `run-${number}`)
    await Promise.all(texts.map((text) => transaction(db, announcing(text))))
    await until(() => heard.flatMap(textsIn).length >= 100, { what: 'all of them' })
    expect(heard.flatMap(textsIn).toSorted()).toEqual(texts.toSorted())
    expect(heard.length).toBeLessThan(texts.length)
  })
})

test('the announcer goes on when one cannot be sent, and closes when all have left', async () => {
  const sent: unknown[] = []
  const { announce, close } = openAnnouncer(async ({ values }) => {
    sent.push(values[1])
    await new Promise((resolve) => setTimeout(resolve, 10))
    throw new Error('the database is away')
  })
  for (const text of ['a', 'b', 'c']) announce({ channel, text })
  await close()
  expect(sent).toEqual(['a', 'b,c'])
  announce({ channel, text: 'd' })
  await close()
  expect(sent).toEqual(['a', 'b,c', 'd'])
})

test('what is announced together fits a payload', async () => {
  const lengths: number[] = []
  const { announce, close } = openAnnouncer(async ({ values }) => lengths.push(String(values[1]).length))
  for (let count = 0; count < 1_000; count += 1) announce({ channel, text: '6f7e0000-0000-7000-8000-000000000000' })
  await close()
  expect(Math.max(...lengths)).toBeLessThan(8_000)
  expect(lengths.length).toBeLessThan(10)
})
