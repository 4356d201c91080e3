import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { atEnd, freshRedis, type Installation, installation, needs, recordStatements, until } from '../support/kit.ts'
import { type Written, watchLog } from '../support/wal.ts'

/**
 * What an apply of an OAuth2 provider with its application costs, by counts, of API and worker together:
 * docs/architecture.md has the whole chain. A statement, a row, an index or a command that is added fails here.
 */

type Cost = {
  /** Statements of API and worker, without those that frame transactions, and those of the queue. */
  readonly statements: number
  /** Round trips to PostgreSQL. Statements that are sent together are one. */
  readonly trips: number
  /** Rows that are inserted, changed or deleted. */
  readonly rows: number
  /** Entries in indexes. */
  readonly entries: number
  /** Bytes of PostgreSQL's log. */
  readonly bytes: number
}

const most: Readonly<Record<'first' | 'unchanged', Cost>> = {
  first: { statements: 11, trips: 6, rows: 12, entries: 26, bytes: 9_000 },
  unchanged: { statements: 10, trips: 6, rows: 4, entries: 12, bytes: 3_200 },
}

type Measured = Cost & Written & { readonly sent: readonly string[] }

const times = 5

/** Statements that only the reconciler and the maintenance send, at intervals. */
const isRegular = (text: string) =>
  !text.includes('INSERT INTO runs') &&
  /WHERE state = 'queued'|worker_formats|metric_sums|generated_until < now|sealed_key IS NOT NULL|idempotency_keys WHERE|row_counts/.test(
    text,
  )

const isSnapshot = (text: string) => /^\s*SELECT/.test(text) && text.includes('"applications"')

async function applyOnce({ admin }: Installation, name: string): Promise<void> {
  const answer = await admin.submit('oauth2', name)
  expect(answer).toMatchObject({ status: 200, json: { applied: true } })
}

/** Waits until nothing is under way that an earlier apply has caused. */
async function quiet(counts: readonly (readonly unknown[])[]): Promise<void> {
  let known = -1
  await until(
    'what an earlier apply caused to end',
    () => {
      const count = counts.reduce((sum, { length }) => sum + length, 0)
      const isSame = count === known
      known = count
      return isSame
    },
    { everyMs: 200 },
  )
}

/** Counts several applies: the least of each is the cost. What is done at intervals beside them adds to some. */
async function expectCost(there: Installation, others: readonly unknown[] = []): Promise<void> {
  const [recorder, log] = [await recordStatements(), await watchLog(there.url)]
  const measure = async (name: string): Promise<Measured> => {
    await quiet([recorder.sent, others])
    const [before, tripsBefore] = [recorder.sent.length, recorder.trips.length]
    const counted = await log.during(async () => {
      await applyOnce(there, name)
      await quiet([recorder.sent, others])
    })
    const sent = recorder.sent.slice(before).filter((text) => !isRegular(text))
    const { length: trips } = recorder.trips.slice(tripsBefore).filter((text) => !isRegular(text))
    return { ...counted, sent, statements: sent.length, trips }
  }
  await applyOnce(there, 'before')
  for (const kind of ['first', 'unchanged'] as const) {
    const all: Measured[] = []
    for (let time = 0; time < times; time += 1) all.push(await measure(`counted-${time}`))
    const least = (value: (each: (typeof all)[number]) => number) => Math.min(...all.map(value))
    const cost = {
      statements: least(({ statements }) => statements),
      trips: least(({ trips }) => trips),
      rows: least(({ rows }) => rows),
      entries: least(({ entries }) => entries),
      bytes: least(({ bytes }) => bytes),
    }
    const seen = all.find(({ sent }) => sent.length === cost.statements)
    console.log(`${kind}: ${JSON.stringify(cost)}\n${seen?.byTable.join('\n')}`)
    for (const name of ['statements', 'trips', 'rows', 'entries', 'bytes'] as const)
      expect(cost[name], `${kind}: ${name}\n${seen?.sent.join('\n')}`).toBeLessThanOrEqual(most[kind][name])
    expect(seen?.sent.filter(isSnapshot)).toHaveLength(2)
    // The end of the run is not read: its notification carries it.
    expect(seen?.sent.filter((text) => text.includes('pg_notify('))).toHaveLength(1)
    expect(seen?.sent.filter((text) => /FROM runs WHERE id = ANY/.test(text))).toEqual([])
  }
}

test("on PostgreSQL's queue", async () => {
  await expectCost(await installation({ queue: 'postgres' }))
})

test.runIf(needs('redis-server'))('on Redis: the same, and few commands', async () => {
  const ratesUrl = await freshRedis()
  const rates = new Redis(ratesUrl)
  atEnd(() => rates.disconnect())
  const there = await installation({ queue: 'redis', rateStore: rates })
  const databases = new Set([ratesUrl, there.redisUrl].map((url) => url?.split('/').at(-1)))
  const monitor = await rates.duplicate().monitor()
  atEnd(() => monitor.disconnect())
  const commands: string[] = []
  monitor.on('monitor', (_at: string, [command = '']: string[], source: string, database: string) => {
    // What a script does is part of it.
    if (source !== 'lua' && databases.has(database)) commands.push(command)
  })
  await expectCost(there, commands)
  // The rate, the job, its end, and what a worker asks that waits for jobs. Some have what is done at intervals beside them.
  const sent: string[][] = []
  for (let time = 0; time < times; time += 1) {
    const before = commands.length
    await applyOnce(there, `commands-${time}`)
    await quiet([commands])
    sent.push(commands.slice(before))
  }
  const least = Math.min(...sent.map(({ length }) => length))
  expect(least, sent.join('\n')).toBeGreaterThanOrEqual(5)
  expect(least, sent.join('\n')).toBeLessThanOrEqual(8)
})
