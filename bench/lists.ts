import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { freePort } from '../test/support/free-port.ts'
import { run } from '../test/support/processes.ts'
import { measureIn } from './child.ts'
import type { Measured } from './measure.ts'
import type { ReadTask } from './read.ts'
import { type Database, openDatabase, openStand, type Stand } from './stand.ts'

/**
 * Reads of one client on a seeded installation, and the floor: the same reads by hand-written SQL over node:http, in the
 * same run and database (lists-floor.ts). At two sizes, to compare them.
 */

export const usage = `npm run bench -- lists [options]
  --users <n,n>     sizes, compared with that of 1000 users (100000)
  --seconds <n>     for each measurement (4)
  --only <text>     the reads whose name begins with it, such as me
  --database <url>  a PostgreSQL server on which databases may be made, instead of one of its own`

type Row = { readonly what: string; readonly users: number; readonly ours: Measured; readonly floor: Measured }

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      users: { type: 'string', default: '100000' },
      seconds: { type: 'string', default: '4' },
      only: { type: 'string', default: '' },
      database: { type: 'string' },
    },
  })
  const database = await openDatabase(values.database)
  try {
    const rows: Row[] = []
    for (const users of new Set([1_000, ...values.users.split(',').map(Number)]))
      rows.push(...(await measureAt(database, users, Number(values.seconds), values.only)))
    console.log(
      `\n${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), Node ${process.version}, ${database.version}; one client, times in ms\n`,
    )
    print(rows)
  } finally {
    await database.close()
  }
}

async function measureAt(server: Database, users: number, seconds: number, only: string): Promise<Row[]> {
  const say = (text: string) => console.log(`${users} users: ${text}`)
  say('starting')
  const stand = await openStand(server, 'postgres')
  try {
    say('seeding')
    const env = { DATABASE_URL: stand.database, SECRET_KEY: stand.secretKey }
    const seeding = run('tools/seed/main.ts', { args: ['--users', String(users)], env })
    if ((await seeding.exited).code !== 0) throw new Error(seeding.output())
    const floor = run('bench/lists-floor.ts', { args: [stand.database] })
    const [, port] = await floor.line(/port (\d+)/, { withinMs: 10_000 })
    const rows: Row[] = []
    for (const [what, path] of await questions(stand.database, users)) {
      if (!what.startsWith(only)) continue
      say(what)
      const read = (url: string, forSeconds: number) =>
        measureIn('read.ts', {
          url: `${url}${path}`,
          token: stand.token,
          clients: 1,
          seconds: forSeconds,
        } satisfies ReadTask)
      for (const url of [stand.url, `http://127.0.0.1:${port}`]) await read(url, 1)
      const ours = await read(stand.url, seconds)
      rows.push({ what, users, ours, floor: await read(`http://127.0.0.1:${port}`, seconds) })
    }
    await floor.stop()
    if (only === '') await measureTurn(stand, say)
    return rows
  } finally {
    await stand.close()
  }
}

/** How long the largest group, read with all its members, keeps other requests waiting at a time. */
async function measureTurn(stand: Stand, say: (text: string) => void): Promise<void> {
  const [group] = await rowsOf<{ name: string; size: number }>(
    stand.database,
    `SELECT g.name, count(*)::integer AS size FROM groups g JOIN memberships m ON m.group_pk = g.pk
     GROUP BY g.pk ORDER BY 2 DESC LIMIT 1`,
  )
  const path = `/api/v3/core/groups/?name=${encodeURIComponent(group?.name ?? '')}`
  const settings = { LOG_LEVEL: 'warn', PORT: String(await freePort()) }
  const env = { DATABASE_URL: stand.database, SECRET_KEY: stand.secretKey, ...settings }
  const measuring = run('bench/turn.ts', { args: [JSON.stringify({ path, token: stand.token })], env })
  const [, turn] = await measuring.line(/turn (.*)/, { withinMs: 120_000 })
  await measuring.exited
  say(`a group of ${group?.size} members: the longest turn of the event loop took ${turn}`)
}

async function rowsOf<Row extends pg.QueryResultRow>(database: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  const { rows } = await client.query<Row>(text)
  await client.end()
  return rows
}

/** The requests, with values that few to some hundred users have. */
async function questions(database: string, users: number): Promise<[string, string][]> {
  const one = async (text: string): Promise<string> => {
    const { value } = (await rowsOf<{ value: unknown }>(database, text))[0] ?? {}
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
  }
  const last = Math.ceil(Number(await one('SELECT count(*) AS value FROM users')) / 100)
  const name = await one(
    `SELECT lower(name) AS value FROM users WHERE name LIKE '% %' GROUP BY 1 ORDER BY abs(count(*) - 5), 1 LIMIT 1`,
  )
  const group = await one(
    `SELECT g.name AS value FROM groups g JOIN memberships m ON m.group_pk = g.pk GROUP BY g.pk ORDER BY abs(count(*) - ${Math.max(20, users / 1_000)}), g.pk LIMIT 1`,
  )
  const attributes = await one(
    `SELECT jsonb_build_object('department', u.attributes -> 'department', 'location', u.attributes -> 'location') AS value
     FROM users u WHERE u.attributes ? 'department' AND u.attributes ? 'location' ORDER BY u.pk LIMIT 1`,
  )
  const list = '/api/v3/core/users/'
  return [
    ['me', '/api/v3/core/users/me/'],
    ['first page of 100, with groups', list],
    ['last page', `${list}?page=${last}`],
    ['a page in the middle', `${list}?page=${Math.ceil(last / 2)}`],
    [`search (${name})`, `${list}?search=${encodeURIComponent(name)}`],
    ['attributes', `${list}?attributes=${encodeURIComponent(attributes)}`],
    ['groups_by_name', `${list}?groups_by_name=${encodeURIComponent(group)}`],
  ]
}

function print(rows: readonly Row[]): void {
  const head = ['', 'users', 'p50', 'p95', 'p99', 'floor p50', 'p95', 'p50 times the floor']
  const ms = (value: number) => value.toFixed(2)
  const lines = rows.map(({ what, users, ours, floor }) => [
    what,
    String(users),
    ...[ours.p50, ours.p95, ours.p99, floor.p50, floor.p95].map(ms),
    `${(ours.p50 / floor.p50).toFixed(2)}x`,
  ])
  const table = [head, ...lines]
  const widths = head.map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0)))
  for (const line of table)
    console.log(
      line
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[column] ?? 0) + 1)))
        .join(' '),
    )
  for (const { what, ours, floor } of rows.filter(({ ours, floor }) => ours.failures + floor.failures > 0))
    console.log(`${what}: FAILED with ${ours.failure ?? floor.failure}`)
  const names = [...new Set(rows.map(({ what }) => what.replace(/ \(.*/, '')))]
  for (const name of names) {
    const [small, ...larger] = rows.filter(({ what }) => what.startsWith(name))
    if (small === undefined) continue
    for (const { users, ours } of larger)
      console.log(`${name}: p50 at ${users} users is ${(ours.p50 / small.ours.p50).toFixed(2)}x that at ${small.users}`)
  }
}
