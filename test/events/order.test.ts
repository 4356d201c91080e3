import fc from 'fast-check'
import pg from 'pg'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { eventsOf, parseId, type RunEvent } from '../../src/events/event.ts'
import { uuid7 } from '../../src/ids.ts'
import { readChanges } from '../../src/runs/changes.ts'
import { advanced, before, isVisible, parseSnapshot, type Snapshot } from '../../src/runs/positions.ts'
import { atEnd } from '../support/at-end.ts'
import { freshDatabase } from '../support/database.ts'

/** Readers of changes, and transactions that commit in another order than they began. */

describe('a snapshot', () => {
  test.each([
    ['10:10:', 9n, true],
    ['10:10:', 10n, false],
    ['10:20:10,14', 12n, true],
    ['10:20:10,14', 14n, false],
    ['10:20:10,14', 25n, false],
  ])('in %s, %s is visible: %s', (text, transaction, visible) => {
    expect(isVisible(parseSnapshot(text), transaction)).toBe(visible)
  })

  test('of a portion: what was read, and what was visible before, and nothing else', () => {
    const snapshot = fc.uniqueArray(fc.integer({ min: 1, max: 20 })).chain((open) =>
      fc.integer({ min: 1, max: 21 }).map((max): Snapshot => {
        const left = open.filter((each) => each < max).map(BigInt)
        return {
          min: left.toSorted((one, other) => Number(one - other))[0] ?? BigInt(max),
          max: BigInt(max),
          open: new Set(left),
        }
      }),
    )
    fc.assert(
      fc.property(snapshot, snapshot, fc.bigInt({ min: 0n, max: 22n }), (from, to, last) => {
        const found = advanced(from, to, last)
        for (let each = 1n; each <= 22n; each += 1n) {
          if (each > last) expect([each, isVisible(found, each)]).toEqual([each, isVisible(from, each)])
          else if (isVisible(to, each)) expect([each, isVisible(found, each)]).toEqual([each, true])
          if (!isVisible(found, each)) expect(each).toBeGreaterThanOrEqual(found.min)
        }
      }),
    )
  })
})

/** One connection, in a transaction or not. */
type Writer = { readonly client: pg.Client; isOpen: boolean; ended: Set<string>; recorded: Set<string> }

let db: Db
let writers: Writer[]
beforeAll(async () => {
  const there = await freshDatabase({ isInstalled: true })
  db = there.service.db
  writers = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const client = new pg.Client({ connectionString: there.url })
      await client.connect()
      atEnd(() => client.end())
      return { client, isOpen: false, ended: new Set<string>(), recorded: new Set<string>() }
    }),
  )
})

const all = [() => 'true']

/** As a reader over HTTP: it reads on, or comes back with the id of an event that it has seen. */
class Reader {
  position: Snapshot
  since: Snapshot | null
  least = 0n
  readonly seen: RunEvent[] = []
  readonly #start: bigint

  constructor(position: Snapshot) {
    this.position = position
    this.since = position
    // A stream begins with the id of its place.
    this.#start = position.min
  }

  async read(most: number, gone = Number.POSITIVE_INFINITY): Promise<boolean> {
    const changes = await readChanges(db, this.position, all, most)
    const events = eventsOf(changes, this.since).filter(({ place }) => place >= this.least)
    this.seen.push(...events.slice(0, gone))
    this.position = changes.position
    if (!changes.isPart) [this.since, this.least] = [changes.position, 0n]
    return changes.isPart
  }

  comeBack(): void {
    const after = parseId(this.seen.at(-1)?.id ?? '')?.after ?? this.#start
    this.position = before(after)
    this.since = null
    this.least = after
  }
}

async function start(): Promise<Snapshot> {
  const { position } = await readChanges(db, before(2n ** 62n), all)
  return position
}

test('a reader that comes back with the id of an end has what began before it and was committed behind it', async () => {
  const [early, late] = [writers[0]?.client, writers[1]?.client]
  const [first, second] = [uuid7(), uuid7()]
  const record = "INSERT INTO runs (id, title, request_id) VALUES ($1, 'x', 'x')"
  const reader = new Reader(await start())
  await early?.query('BEGIN')
  await early?.query(record, [first])
  await late?.query(record, [second])
  await late?.query("UPDATE runs SET state = 'cancelled', finished_at = clock_timestamp() WHERE id = $1", [second])
  await reader.read(400)
  expect(reader.seen.at(-1)).toMatchObject({ event: 'ended', run: second })
  reader.comeBack()
  await early?.query('COMMIT')
  await reader.read(400)
  expect(reader.seen.map(({ event, run }) => `${event} ${run}`)).toContain(`queued ${first}`)
})

test('whatever the order of begins and commits, a reader that is cut off anywhere has each event', async () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ is: fc.constant('record' as const), writer: fc.nat(3) }) },
    { weight: 4, arbitrary: fc.record({ is: fc.constant('end' as const), writer: fc.nat(3), run: fc.nat() }) },
    { weight: 2, arbitrary: fc.record({ is: fc.constant('begin' as const), writer: fc.nat(3) }) },
    {
      weight: 2,
      arbitrary: fc.record({ is: fc.constantFrom('COMMIT' as const, 'ROLLBACK' as const), writer: fc.nat(3) }),
    },
    { weight: 3, arbitrary: fc.record({ is: fc.constant('read' as const), most: fc.integer({ min: 1, max: 4 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({ is: fc.constant('cut' as const), most: fc.integer({ min: 1, max: 4 }), at: fc.nat(4) }),
    },
  )
  const play = async (steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]) => {
    const [recorded, ended] = [new Set<string>(), new Set<string>()]
    const [whole, cut] = [new Reader(await start()), new Reader(await start())]
    const close = async (writer: Writer, how: 'COMMIT' | 'ROLLBACK') => {
      await writer.client.query(how)
      if (how === 'COMMIT') for (const run of writer.recorded) recorded.add(run)
      if (how === 'COMMIT') for (const run of writer.ended) ended.add(run)
      writer.isOpen = false
      writer.recorded.clear()
      writer.ended.clear()
    }
    for (const each of steps) {
      const writer = 'writer' in each ? writers[each.writer] : undefined
      if (each.is === 'read') await Promise.all([whole.read(400), cut.read(each.most)])
      else if (each.is === 'cut') {
        await cut.read(each.most, each.at)
        cut.comeBack()
      } else if (writer === undefined) continue
      else if (each.is === 'begin' && !writer.isOpen) {
        // It has its number from now on.
        await writer.client.query('BEGIN')
        await writer.client.query('SELECT pg_current_xact_id()')
        writer.isOpen = true
      } else if (each.is === 'COMMIT' || each.is === 'ROLLBACK') await close(writer, each.is)
      else if (each.is === 'record') {
        const id = uuid7()
        await writer.client.query("INSERT INTO runs (id, title, request_id) VALUES ($1, 'x', 'x')", [id])
        writer.recorded.add(id)
        if (!writer.isOpen) await close(writer, 'COMMIT')
      } else if (each.is === 'end') {
        const locked = new Set(writers.flatMap((other) => [...other.ended]))
        const free = [...recorded].filter((id) => !ended.has(id) && !locked.has(id))
        const id = free[each.run % free.length]
        if (id === undefined) continue
        const text = "UPDATE runs SET state = 'done', applied = true, finished_at = clock_timestamp() WHERE id = $1"
        await writer.client.query(text, [id])
        writer.ended.add(id)
        if (!writer.isOpen) await close(writer, 'COMMIT')
      }
    }
    for (const writer of writers) await close(writer, 'COMMIT')
    const wanted = [...[...recorded].map((id) => `queued ${id}`), ...[...ended].map((id) => `ended ${id}`)].sort()
    for (const reader of [whole, cut]) {
      while (await reader.read(reader === cut ? 3 : 400));
      // A reader that goes back to its start may see what stood there before.
      const seen = reader.seen.filter(({ run }) => recorded.has(run))
      expect([...new Set(seen.map(({ event, run }) => `${event} ${run}`))].sort()).toEqual(wanted)
      // The same event has the same id, and another has another.
      expect(new Set(seen.map(({ id, event, run }) => `${event} ${run} ${id}`)).size).toBe(wanted.length)
      expect(new Set(seen.map(({ id }) => id)).size).toBe(wanted.length)
    }
    // One that is never cut off, nor behind by more than a portion, is told nothing twice.
    expect(whole.seen).toHaveLength(wanted.length)
  }
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), play), {
    numRuns: Math.ceil(inject('rounds') * 160),
  })
})
