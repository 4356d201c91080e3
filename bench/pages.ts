import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { cpuMsOf, sessionsOf } from './cpu.ts'
import { install, openKept, secretOf, startKept } from './kept.ts'
import { quantile } from './measure.ts'
import { openReader, submitReal } from './pages-runs.ts'
import { seedLedger } from './pages-seed.ts'
import { type Question, questions } from './pages-urls.ts'
import { openDatabase } from './stand.ts'

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
    const kept = await openKept(server.url, name)
    const { database: url, secretKey, token } = kept
    await install(kept)
    await seedLedger({
      url,
      secretKey,
      say,
      runs: Number(values.runs),
      size: { users: 1_000, groups: 80, applications: Number(values.applications) },
    })
    const started = await startKept(kept)
    const { at } = started
    const real = await submitReal(at, token)
    const secret = secretOf(kept, 'reader')
    await openReader(url, secret)
    const cookies = { cookie: await logIn(at, token), reader: await logIn(at, secret) }
    const login = { ...cookies, token, pid: started.pid, url }
    const lines = await measureAll(at, login, await questions(url, real), Number(values.times), values.only)
    await started.stop()
    print(lines)
    console.log(`\n${server.version}; ${values.runs} runs, ${values.applications} applications; times in ms`)
  } finally {
    await server.close()
  }
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
      const cpu = cpuMsOf(pids)
      const began = performance.now()
      const answer = await fetch(`${at}${path}`, { headers, redirect: 'manual' })
      const text = await answer.text()
      const took = performance.now() - began
      if (round >= 0) line.times.push(took)
      if (round >= 0) line.cpu.push(cpuMsOf(pids) - cpu)
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
