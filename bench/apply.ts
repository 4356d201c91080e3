import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { benchAgainst } from './against.ts'
import { measureIn } from './child.ts'
import { cpuSeconds } from './cpu.ts'
import type { FloorTask } from './floor.ts'
import type { LoadTask } from './load.ts'
import type { Load, Measured } from './measure.ts'
import { type BackendKind, type Database, openDatabase, openStand, type Stand, type WorkerKind } from './stand.ts'

/**
 * PUT /api/v3/core/transactional/applications/, from request to answer. Each creates an application and a provider. With
 * the worker as it is, and with one that uses Prisma's transactions instead of pipelined ones. The floors (floor.ts) are
 * measured in the same run and database.
 */

export const usage = `npm run bench -- apply [options]
  --backend <redis|postgres|both>  where the queue lives (both)
  --worker <pipelined|prisma|both> the worker as it is, or with Prisma's own transactions (both)
  --clients <n>                    clients at once, beside the run with one (32)
  --seconds <n>                    for each measurement (6)
  --database <url>                 a PostgreSQL server on which databases may be made, instead of one of its own
  --profile <folder>               CPU profiles of API and worker, for Chrome's developer tools
  --against <folder>               another checkout with its node_modules and src/db/generated: both are started, and take
                                   turns in short rounds. Takes --backend, --clients (8), and
  --rounds <n>                     of each checkout (12)
  --turn <n>                       seconds of one measurement (2)`

type Options = { readonly clients: number; readonly seconds: number; readonly nodeOptions: string }
type Row = { readonly what: string; readonly one: Measured; readonly many: Measured; readonly cpu: string }

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'both' },
      worker: { type: 'string', default: 'both' },
      clients: { type: 'string' },
      seconds: { type: 'string', default: '6' },
      database: { type: 'string' },
      profile: { type: 'string' },
      against: { type: 'string' },
      rounds: { type: 'string', default: '12' },
      turn: { type: 'string', default: '2' },
    },
  })
  const { backend, profile, against } = values
  const workers = (['pipelined', 'prisma'] as const).filter((kind) => ['both', kind].includes(values.worker))
  if (workers.length === 0) throw new Error(`--worker ${values.worker}: it takes pipelined, prisma or both`)
  if (!['redis', 'postgres', 'both'].includes(backend))
    throw new Error(`--backend ${backend}: it takes redis, postgres or both`)
  const backends = (['redis', 'postgres'] as const).filter((kind) => backend === 'both' || backend === kind)
  if (against !== undefined) {
    const clients = whole('--clients', values.clients ?? '8', 1_000)
    const rounds = whole('--rounds', values.rounds, 1_000)
    for (const kind of backends)
      await benchAgainst(kind, { checkout: against, clients, rounds, seconds: whole('--turn', values.turn, 600) })
    return
  }
  const options: Options = {
    clients: whole('--clients', values.clients ?? '32', 1_000),
    seconds: whole('--seconds', values.seconds, 600),
    nodeOptions: profile === undefined ? '' : `--cpu-prof --cpu-prof-dir=${profile}`,
  }
  const database = await openDatabase(values.database)
  try {
    const rows: Row[] = []
    for (const kind of backends) {
      for (const worker of workers) rows.push(...(await measureBackend(database, kind, worker, options)))
    }
    console.log(
      `\n${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), Node ${process.version}, ${database.version}`,
    )
    console.log(`${options.seconds} s for each measurement; times in ms\n`)
    print(rows)
  } finally {
    await database.close()
  }
}

function whole(name: string, text: string, max: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : 0
  if (number < 1 || number > max) throw new Error(`${name} ${text}: it takes a whole number from 1 to ${max}`)
  return number
}

async function measureBackend(
  server: Database,
  kind: BackendKind,
  worker: WorkerKind,
  { clients, seconds, nodeOptions }: Options,
): Promise<Row[]> {
  const say = (text: string) => console.log(`${kind}, ${worker}: ${text}`)
  say('starting')
  const stand = await openStand(server, kind, { nodeOptions, worker })
  try {
    const apply = (prefix: string, load: Load) =>
      measureIn('load.ts', { url: stand.url, token: stand.token, prefix, ...load } satisfies LoadTask)
    const floor = (through: FloorTask['through'], prefix: string, load: Load) =>
      measureIn('floor.ts', {
        ...{ database: stand.database, prefix: `${through}-${prefix}`, like: 'warm-up-1', through },
        ...load,
      } satisfies FloorTask)
    const floorRow = async (through: FloorTask['through'], what: string): Promise<Row> => {
      await floor(through, 'floor-warm-up', { clients, seconds: 3 })
      const one = await floor(through, 'floor-one', { clients: 1, seconds })
      return { what, one, many: await floor(through, 'floor-many', { clients, seconds }), cpu: '' }
    }
    say('warming up')
    // V8 compiles frequent code for about this long.
    await apply('warm-up', { clients, seconds: 40 })
    say('one client')
    const one = await apply('one', { clients: 1, seconds })
    say(`${clients} clients`)
    const before = cpuOf(stand)
    const many = await apply('many', { clients, seconds })
    const cpu = perApply(before, cpuOf(stand), many)
    say('the floor')
    return [
      { what: `apply, queue on ${kind}, worker ${worker}`, one, many, cpu },
      await floorRow('pg', 'floor: the rows alone'),
      await floorRow('prisma', "floor: the rows in Prisma's transaction"),
    ]
  } finally {
    await stand.close()
  }
}

const cpuOf = ({ processes }: Stand) =>
  Object.entries(processes).map(([name, pid]) => ({ name, seconds: cpuSeconds(pid) }))

function perApply(
  before: ReturnType<typeof cpuOf>,
  after: ReturnType<typeof cpuOf>,
  { count, cpuMs }: Measured,
): string {
  const ms = after.map(({ name, seconds }, index) => ({
    name,
    ms: ((seconds - (before[index]?.seconds ?? 0)) * 1_000) / count,
  }))
  const parts = [...ms, { name: 'clients', ms: cpuMs }]
  const sum = parts.reduce((total, part) => total + part.ms, 0)
  return `CPU ms per apply: ${parts.map((part) => `${part.name} ${part.ms.toFixed(2)}`).join(', ')}; together ${sum.toFixed(2)}`
}

function print(rows: readonly Row[]): void {
  const cells = (measured: Measured) => [measured.p50, measured.p95, measured.p99].map((ms) => ms.toFixed(2))
  const lines = rows.map(({ what, one, many }) => [what, ...cells(one), ...cells(many), many.perSecond.toFixed(0)])
  const ratios = pairs(rows).map(([apply, floor]) => [
    `${apply.what} / ${floor.what}`,
    ...ratio(apply.one, floor.one),
    ...ratio(apply.many, floor.many),
    (apply.many.perSecond / floor.many.perSecond).toFixed(2),
  ])
  const n = rows[0]?.many.clients ?? 0
  const head = ['', '1: p50', 'p95', 'p99', `${n}: p50`, 'p95', 'p99', 'per s']
  const table = [head, ...lines, ...ratios]
  const widths = head.map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0)))
  for (const line of table) {
    console.log(
      line
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[column] ?? 0) + 1)))
        .join(' '),
    )
  }
  for (const { what, one, many, cpu } of rows) {
    const failures = one.failures + many.failures
    if (cpu !== '') console.log(`${what}: ${cpu}`)
    if (failures > 0) console.log(`${what}: ${failures} FAILED, the first with: ${one.failure ?? many.failure}`)
  }
}

const ratio = (apply: Measured, floor: Measured) =>
  (['p50', 'p95', 'p99'] as const).map((name) => `${(apply[name] / floor[name]).toFixed(1)}x`)

/** Compares each apply with each floor of the same run. */
const pairs = (rows: readonly Row[]): [Row, Row][] =>
  rows.flatMap((row, index) =>
    index % 3 === 0 ? rows.slice(index + 1, index + 3).map((floor): [Row, Row] => [row, floor]) : [],
  )
