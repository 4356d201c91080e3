import { parseArgs } from 'node:util'
import type pg from 'pg'
import { uuid7 } from '../src/ids.ts'
import { within } from '../test/support/template.ts'
import { measureIn } from './child.ts'
import type { LoadTask } from './load.ts'
import { openDatabase, openStand, type Stand } from './stand.ts'

/**
 * What an apply that changes nothing adds to the ledger: tables with what they store out of line, and indexes. Through the
 * product, with the runs that a pipeline makes which sends the same file again and again. The floor is an INSERT of a run
 * that has nothing but its key.
 */

export const usage = `npm run bench -- ledger [options]
  --backend <redis|postgres>  where the queue lives (redis)
  --count <n>                 unchanged applies (5000)
  --applications <n>          that take turns (1)`

/** What grows with each apply. Those that this version does not have are left out. */
const tables = ['runs', 'audit_rows', 'run_attempts']

/** Bytes by table. */
type Size = ReadonlyMap<string, { readonly rows: number; readonly indexes: number }>

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'redis' },
      count: { type: 'string', default: '5000' },
      applications: { type: 'string', default: '1' },
    },
  })
  const { backend } = values
  if (backend !== 'redis' && backend !== 'postgres') throw new Error(`--backend ${backend}: it takes redis or postgres`)
  const [count, applications] = [whole('--count', values.count), whole('--applications', values.applications)]
  const server = await openDatabase(undefined)
  const stand = await openStand(server, backend)
  try {
    await within(stand.database, async (client) => {
      await round(stand, applications)
      // What is kept once for many runs is there before anything is measured.
      await repeat(stand, applications, applications)
      const before = await packed(client)
      const done = await repeat(stand, applications, count)
      const after = await packed(client)
      await client.query(
        `INSERT INTO runs (id, title, request_id, state, finished_at) SELECT id, '', '', 'done', now()
          FROM unnest($1::uuid[]) id`,
        [Array.from({ length: done }, uuid7)],
      )
      const floor = added(after, await packed(client), done)
      const full = added(before, after, done)
      console.log(`${done} unchanged applies, applications: ${applications}; bytes for each after VACUUM FULL:`)
      for (const [table, { rows, indexes }] of full)
        if (rows + indexes > 0)
          console.log(`  ${table}: ${bytesText(rows)} in the table, ${bytesText(indexes)} in indexes`)
      const sum = sumOf(full)
      console.log(`together ${bytesText(sum)}; an empty run ${bytesText(sumOf(floor))}`)
      console.log(`a million of them: ${(sum / 1_000).toFixed(2)} GB`)
    })
  } finally {
    await stand.close()
    await server.close()
  }
}

function whole(name: string, text: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : 0
  if (number < 1 || number > 1_000_000) throw new Error(`${name} ${text}: it takes a whole number from 1 to 1000000`)
  return number
}

const bytesText = (bytes: number): string => bytes.toFixed(0)

/** Applies each of the applications once. */
async function round({ url, token }: Stand, applications: number): Promise<void> {
  await put({ url, token, prefix: 'ledger', clients: Math.min(4, applications), seconds: 3_600, count: applications })
}

/** @returns how many applies there were: whole rounds */
async function repeat(stand: Stand, applications: number, count: number): Promise<number> {
  if (applications === 1) {
    const { url, token } = stand
    await put({ url, token, prefix: 'ledger-1', what: 'again', clients: 1, seconds: 3_600, count })
    return count
  }
  const rounds = Math.ceil(count / applications)
  for (let done = 0; done < rounds; done += 1) await round(stand, applications)
  return rounds * applications
}

async function put(task: LoadTask): Promise<void> {
  const { failures, failure } = await measureIn('load.ts', task)
  if (failures > 0) throw new Error(`${failures} applies failed, the first with: ${failure}`)
}

/** The sizes after all tables were written anew: else they depend on when PostgreSQL last cleaned up. */
async function packed(client: pg.Client): Promise<Size> {
  for (const table of (await sizes(client)).keys()) await client.query(`VACUUM FULL ${table}`)
  return sizes(client)
}

async function sizes(client: pg.Client): Promise<Size> {
  const { rows } = await client.query<{ name: string; rows: string; indexes: string }>(
    `SELECT relname AS name, pg_table_size(oid) AS rows, pg_indexes_size(oid) AS indexes
      FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = ANY($1) ORDER BY array_position($1, relname::text)`,
    [tables],
  )
  return new Map(rows.map((row) => [row.name, { rows: Number(row.rows), indexes: Number(row.indexes) }]))
}

const added = (before: Size, after: Size, count: number): Size =>
  new Map(
    [...after].map(([table, { rows, indexes }]) => {
      const earlier = before.get(table) ?? { rows: 0, indexes: 0 }
      return [table, { rows: (rows - earlier.rows) / count, indexes: (indexes - earlier.indexes) / count }]
    }),
  )

const sumOf = (size: Size): number => [...size.values()].reduce((sum, { rows, indexes }) => sum + rows + indexes, 0)
