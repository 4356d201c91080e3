import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { within } from '../test/support/template.ts'
import { measureIn } from './child.ts'
import { cpuSeconds } from './cpu.ts'
import type { FloorTask } from './floor.ts'
import type { LoadTask } from './load.ts'
import type { Measured } from './measure.ts'
import { type BackendKind, type Database, openDatabase, openStand, type Stand } from './stand.ts'

/**
 * PUTs of an application and a provider with one, two and four workers: how many a second, CPU for each, and connections to
 * PostgreSQL. The floor is the same rows in one transaction, by hand-written SQL (floor.ts), in the same database.
 */

export const usage = `npm run bench -- scale [options]
  --backend <redis|postgres>  where the queue lives (redis)
  --workers <n,n>             how many worker processes (1,2,4)
  --clients <n>               clients at once (32)
  --seconds <n>               for each measurement (10)`

type Row = {
  readonly workers: number
  readonly applied: Measured
  readonly floor: Measured
  /** Milliseconds of CPU for each apply, by process. */
  readonly cpuMs: ReadonlyMap<string, number>
  /** Those that are open after the load: pools keep them. */
  readonly connections: number
}

/** V8 compiles frequent code for about this long. */
const warmUpS = 20

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'redis' },
      workers: { type: 'string', default: '1,2,4' },
      clients: { type: 'string', default: '32' },
      seconds: { type: 'string', default: '10' },
    },
  })
  const { backend } = values
  if (backend !== 'redis' && backend !== 'postgres') throw new Error(`--backend ${backend}: it takes redis or postgres`)
  const counts = values.workers.split(',').map(Number)
  const [clients, seconds] = [Number(values.clients), Number(values.seconds)]
  if (!counts.every((count) => count >= 1 && count <= 16)) throw new Error('--workers takes numbers from 1 to 16')
  if (!(clients >= 1 && clients <= 1_000)) throw new Error('--clients takes a number from 1 to 1000')
  if (!(seconds >= 1 && seconds <= 600)) throw new Error('--seconds takes a number from 1 to 600')
  const rows: Row[] = []
  for (const workers of counts) {
    console.log(`${workers} workers`)
    const database = await openDatabase(undefined)
    try {
      rows.push(await measureWith(workers, database, backend, { clients, seconds }))
    } finally {
      await database.close()
    }
  }
  console.log(`\n${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), Node ${process.version}`)
  console.log(`queue on ${backend}, ${clients} clients, ${seconds} s for each measurement; times in ms\n`)
  for (const row of rows) print(row, rows[0] ?? row)
}

async function measureWith(
  workers: number,
  database: Database,
  backend: BackendKind,
  load: { readonly clients: number; readonly seconds: number },
): Promise<Row> {
  const stand = await openStand(database, backend, { workers })
  try {
    const put = (prefix: string, seconds: number) =>
      measureIn('load.ts', { url: stand.url, token: stand.token, prefix, ...load, seconds } satisfies LoadTask)
    await put('warm-up', warmUpS)
    const before = cpuOf(stand)
    const applied = await put('many', load.seconds)
    const cpuMs = new Map(
      cpuOf(stand).map(([name, s], index) => [name, ((s - (before[index]?.[1] ?? 0)) * 1_000) / applied.count]),
    )
    const connections = await countConnections(stand.database)
    const task = { database: stand.database, like: await anySlug(stand.database), through: 'pg', ...load } as const
    await measureIn('floor.ts', { ...task, prefix: 'floor-warm-up', seconds: 3 } satisfies FloorTask)
    const floor = await measureIn('floor.ts', { ...task, prefix: 'floor' } satisfies FloorTask)
    return { workers, applied, floor, cpuMs, connections }
  } finally {
    await stand.close()
  }
}

const cpuOf = ({ processes }: Stand) => Object.entries(processes).map(([name, pid]) => [name, cpuSeconds(pid)] as const)

/** The slug of an application that was applied: on a busy machine the first ones may be refused. */
async function anySlug(url: string): Promise<string> {
  const text = "SELECT slug FROM applications WHERE slug LIKE 'warm-up-%' LIMIT 1"
  const { rows } = await within(url, (client) => client.query<{ slug: string }>(text))
  return rows[0]?.slug ?? ''
}

async function countConnections(url: string): Promise<number> {
  const text = `SELECT count(*)::integer AS count FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'gatewright%'`
  const { rows } = await within(url, (client) => client.query<{ count: number }>(text))
  return rows[0]?.count ?? Number.NaN
}

function print({ workers, applied, floor, cpuMs, connections }: Row, first: Row): void {
  const ofWorkers = [...cpuMs].filter(([name]) => name.startsWith('worker')).reduce((sum, [, ms]) => sum + ms, 0)
  const others = [...cpuMs].filter(([name]) => !name.startsWith('worker'))
  const parts = [...others, ['workers', ofWorkers] as const, ['clients', applied.cpuMs] as const]
  const together = parts.reduce((sum, [, ms]) => sum + ms, 0)
  const facts = [
    `${applied.perSecond.toFixed(0)} per s`,
    `${(applied.perSecond / first.applied.perSecond).toFixed(2)}x of ${first.workers}`,
    `p50 ${applied.p50.toFixed(1)}, p95 ${applied.p95.toFixed(1)}, p99 ${applied.p99.toFixed(1)}`,
    `floor ${floor.perSecond.toFixed(0)} per s (${(applied.perSecond / floor.perSecond).toFixed(2)} of it)`,
    `${connections} connections`,
  ]
  console.log(`${workers} workers: ${facts.join('; ')}`)
  console.log(
    `  CPU ms per apply: ${parts.map(([name, ms]) => `${name} ${ms.toFixed(2)}`).join(', ')}; together ${together.toFixed(2)}`,
  )
  if (applied.failures > 0) console.log(`  ${applied.failures} FAILED, the first with: ${applied.failure}`)
}
