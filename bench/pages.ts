import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import pg from 'pg'
import { freePort } from '../test/support/free-port.ts'
import { wideEnv } from '../test/support/limits.ts'
import { type Running, run } from '../test/support/processes.ts'
import { within } from '../test/support/template.ts'
import { quantile } from './measure.ts'
import { openReader, submitReal } from './pages-runs.ts'
import { seedLedger } from './pages-seed.ts'
import { type Question, questions } from './pages-urls.ts'
import { answers, openDatabase } from './stand.ts'

/**
 * The operators' pages and the lists behind them, on an installation with a large ledger: one reader, one request after the
 * other, the questions in turns, so that no answer is the one before. The floor is a page that reads a table of few rows.
 */

export const usage = `npm run bench -- pages [options]
  --runs <n>          in the ledger (1000000)
  --applications <n>  (100000)
  --times <n>         requests of each page (40)
  --only <text>       the pages whose name contains it
  --database <url>    a PostgreSQL server on which the filled database stays, and is used again, instead of one of its own`

/** @property cpu milliseconds of the API and its sessions in PostgreSQL, which other load of the machine does not change */
type Line = {
  readonly what: string
  readonly times: number[]
  readonly cpu: number[]
  bytes: number
  failure: string | null
}

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      runs: { type: 'string', default: '1000000' },
      applications: { type: 'string', default: '100000' },
      times: { type: 'string', default: '40' },
      only: { type: 'string', default: '' },
      database: { type: 'string' },
    },
  })
  const server = await openDatabase(values.database)
  const name = `gatewright_pages_${values.runs}_${values.applications}`
  const say = (text: string) => console.log(text)
  try {
    const url = await openNamed(server.url, name)
    // The same for each use of the same database.
    const secretKey = createHash('sha256').update(name).digest('base64url')
    const token = createHash('sha256').update(`${name} token`).digest('base64url')
    const port = await freePort()
    const env = {
      ...{ ...wideEnv, DATABASE_URL: url, SECRET_KEY: secretKey, BOOTSTRAP_TOKEN: token, LOG_LEVEL: 'warn' },
      ...{ PORT: String(port), RUN_DAYS: '3650', AUDIT_DAYS: '3650' },
    }
    const started = await start(env, port)
    await seedLedger({
      ...{ url, secretKey, say },
      runs: Number(values.runs),
      applications: Number(values.applications),
    })
    await folded(url)
    const at = `http://127.0.0.1:${port}`
    const real = await submitReal(at, token)
    const secret = createHash('sha256').update(`${name} reader`).digest('base64url')
    await openReader(url, secret)
    const cookies = { cookie: await logIn(at, token), reader: await logIn(at, secret) }
    const login = { ...cookies, token, pid: started[0]?.pid ?? 0, url }
    const lines = await measureAll(at, login, await questions(url, real), Number(values.times), values.only)
    for (const process of started) await process.stop()
    print(lines)
    console.log(`\n${server.version}; ${values.runs} runs, ${values.applications} applications; times in ms`)
  } finally {
    await server.close()
  }
}

async function start(env: Record<string, string>, port: number): Promise<readonly Running[]> {
  const api = run('src/server.ts', { env: { ...env, NODE_OPTIONS: '--max-semi-space-size=4' } })
  await answers(`http://127.0.0.1:${port}/-/health/live/`, api)
  const worker = run('workers/blueprint.ts', { env })
  await answers(`http://127.0.0.1:${port}/-/health/ready/`, worker)
  return [api, worker]
}

/** Makes the database unless it is there. */
async function openNamed(server: string, name: string): Promise<string> {
  await within(server, async (client) => {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name])
    if (rowCount === 0) await client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`)
  })
  const url = new URL(server)
  url.pathname = name
  return url.href
}

/** Waits until the worker has folded the runs, as it has on an installation that was not made a minute ago. */
async function folded(url: string): Promise<void> {
  await within(url, async (client) => {
    for (;;) {
      const { rows } = await client.query<{ ready: boolean }>(
        "SELECT until > now() - interval '10 minutes' AS ready FROM run_folds",
      )
      if (rows[0]?.ready === true) return
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  })
}

async function logIn(at: string, token: string): Promise<string> {
  const answer = await fetch(`${at}/admin/login/`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: at, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ access_token: token }),
  })
  const cookie = answer.headers.get('set-cookie')?.split(';', 1)[0]
  if (cookie === undefined) throw new Error(`the login answered ${answer.status}: ${await answer.text()}`)
  return cookie
}

/** @property reader the cookie of the submitter of most */
type Login = {
  readonly cookie: string
  readonly reader: string
  readonly token: string
  readonly pid: number
  readonly url: string
}

/** Milliseconds of processor time of these processes until now; of one that is gone, or unknown to this system, 0. */
const cpuOf = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => {
    try {
      const tasks = readdirSync(`/proc/${pid}/task`)
      const ns = tasks.map((task) =>
        Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ', 1)[0]),
      )
      return sum + ns.reduce((all, each) => all + each, 0) / 1_000_000
    } catch {
      return sum
    }
  }, 0)

const sessionsOf = (url: string): Promise<number[]> =>
  within(url, async (client) => {
    const text =
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gatewright-api'"
    return (await client.query<{ pid: number }>(text)).rows.map(({ pid }) => pid)
  })

async function measureAll(
  at: string,
  { cookie, reader, token, pid, url }: Login,
  asked: readonly Question[],
  times: number,
  only: string,
): Promise<Line[]> {
  const lines = asked
    .filter(([what]) => what.includes(only) || what.startsWith('floor'))
    .map(([what, path, by]) => ({ path, by, line: { what, times: [], cpu: [], bytes: 0, failure: null } as Line }))
  // The first round is not counted: it fills the caches of PostgreSQL.
  for (let round = -1; round < times; round += 1) {
    const pids = [pid, ...(await sessionsOf(url))]
    for (const { path, by, line } of lines) {
      const headers: Record<string, string> = path.startsWith('/admin')
        ? { cookie: by === undefined ? cookie : reader }
        : { authorization: `Bearer ${token}` }
      const cpu = cpuOf(pids)
      const began = performance.now()
      const answer = await fetch(`${at}${path}`, { headers, redirect: 'manual' })
      const text = await answer.text()
      const took = performance.now() - began
      if (round >= 0) line.times.push(took)
      if (round >= 0) line.cpu.push(cpuOf(pids) - cpu)
      line.bytes = Math.max(line.bytes, Buffer.byteLength(text))
      if (answer.status !== 200) line.failure = `${answer.status} ${text.slice(0, 200)}`
      else if (/too long|could not be (counted|read)|not known just now/i.test(text))
        line.failure = 'a part was not read in time'
    }
  }
  const page = await (await fetch(`${at}/admin/workers/`, { headers: { cookie } })).text()
  for (const [, path = ''] of page.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)) {
    const body = Buffer.from(await (await fetch(`${at}${path}`)).arrayBuffer())
    console.log(`${path}: ${gzipSync(body).length} bytes gzipped`)
  }
  return lines.map(({ line }) => line)
}

function print(lines: readonly Line[]): void {
  const head = ['', 'p50', 'p95', 'max', 'CPU p50', 'p95', 'KB', '']
  const rows = lines.map(({ what, times, cpu, bytes, failure }) => {
    const sorted = times.toSorted((one, other) => one - other)
    const sortedCpu = cpu.toSorted((one, other) => one - other)
    const [p50, p95, max] = [quantile(sorted, 0.5), quantile(sorted, 0.95), sorted.at(-1) ?? 0]
    const isSlow = p95 > 50 || (what.startsWith('page') && bytes > 100_000)
    return [
      what,
      ...[p50, p95, max, quantile(sortedCpu, 0.5), quantile(sortedCpu, 0.95), bytes / 1_000].map((value) =>
        value.toFixed(1),
      ),
      failure ?? (isSlow ? 'SLOW' : ''),
    ]
  })
  const table = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0)))
  for (const line of table)
    console.log(
      line
        .map((cell, column) =>
          column === 0 || column === head.length - 1
            ? cell.padEnd(widths[column] ?? 0)
            : cell.padStart((widths[column] ?? 0) + 1),
        )
        .join(' ')
        .trimEnd(),
    )
}
