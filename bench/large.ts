import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cpuMsOfSessions, sessionsOf } from './cpu.ts'
import { type Kept, startKept } from './kept.ts'
import { benchProgram, type Case, openCases } from './large-cases.ts'
import { seedLarge } from './large-data.ts'
import { listQuestions } from './large-questions.ts'
import { quantile } from './measure.ts'
import { type Database, openDatabase } from './stand.ts'

/**
 * A million of everything: each list with each of its filters, orders and searches, and what is known to cost most, beside
 * the same on an installation of 1 000 users. What PostgreSQL works for an answer is measured as CPU, which other load of
 * the machine hardly changes.
 */

export const usage = `npm run bench -- large [options]
  --users <n>       how many; of the rest as many as a million users have (1000000)
  --times <n>       requests of each kind, fewer of slow ones (15)
  --only <text>     what contains it
  --data <folder>   keeps the databases there, and uses them again
  --database <url>  a PostgreSQL server of this machine that keeps them, instead of one of its own
  --seed-only       measures nothing`

const smallUsers = 1_000
const manyUsers = 1_000_000

const nameOf = (users: number): string => (users === manyUsers ? 'large' : `large_${users}`)

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      users: { type: 'string', default: String(manyUsers) },
      times: { type: 'string', default: '15' },
      only: { type: 'string', default: '' },
      data: { type: 'string' },
      database: { type: 'string' },
      'seed-only': { type: 'boolean', default: false },
    },
  })
  const users = whole('--users', values.users, smallUsers, manyUsers)
  const times = whole('--times', values.times, 1, 1_000)
  const own = values.data === undefined && values.database === undefined
  const at = own ? mkdtempSync(join(tmpdir(), 'gatewright-large-')) : values.data
  try {
    const sizes = [...new Set([smallUsers, users])]
    // A server that writes nothing to disk at once is filled faster.
    const filling = await openDatabase(values.database, { at, durable: false })
    try {
      for (const size of sizes)
        await seedLarge(filling.url, nameOf(size), size, progress(`${size.toLocaleString('en')} users`))
    } finally {
      await filling.close()
    }
    if (values['seed-only']) return
    const server = await openDatabase(values.database, { at })
    try {
      const found = new Map<string, Line>()
      console.log(
        `${availableParallelism()} cores (${cpus()[0]?.model ?? 'unknown'}), Node ${process.version}, ${server.version}; times in ms\n`,
      )
      for (const size of sizes) {
        const isLast = size === users
        if (isLast) printHead(users)
        const print = isLast ? (line: Line) => printLine(line, users) : () => {}
        await measureAt(server, size, { times, only: values.only, print }, found)
      }
      printSum([...found.values()], users)
    } finally {
      await server.close()
    }
  } finally {
    if (own && at !== undefined) rmSync(at, { recursive: true, force: true })
  }
}

function whole(name: string, text: string, least: number, most: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new Error(`${name} ${text}: it takes a whole number from ${least} to ${most}`)
}

/** Prints each step with how long the one before took. */
function progress(what: string): (step: string) => void {
  let began = performance.now()
  return (step) => {
    const now = performance.now()
    console.log(`${what}: ${step} (after ${((now - began) / 1_000).toFixed(1)} s)`)
    began = now
  }
}

type Figures = { readonly p50: number; readonly p95: number; readonly cpu: number }

type Line = {
  what: string
  readonly mostMs: number
  readonly bySize: Map<number, Figures | { readonly failure: string }>
  fact: string
}

async function measureAt(
  server: Database,
  users: number,
  { times, only, print }: { readonly times: number; readonly only: string; print(line: Line): void },
  found: Map<string, Line>,
): Promise<void> {
  const kept = await seedLarge(server.url, nameOf(users), users, () => {})
  const started = await startKept(kept)
  const { cases, close } = await openCases(kept, started)
  try {
    const get = async (path: string): Promise<unknown> => {
      const answer = await fetch(`${started.at}${path}`, { headers: { authorization: `Bearer ${kept.token}` } })
      const text = await answer.text()
      if (answer.status !== 200) throw new Error(`${answer.status} ${text.slice(0, 200)}`)
      return JSON.parse(text)
    }
    const measureOne = async (key: string, asked: Case): Promise<void> => {
      if (!asked.what.includes(only)) return
      const line = found.getOrInsertComputed(key, () => ({ ...asked, bySize: new Map(), fact: '' }))
      line.what = asked.what
      line.bySize.set(users, await measure(kept, asked, times))
      line.fact = asked.fact?.() ?? ''
      print(line)
    }
    // The same case in another size has another number of members in its name.
    for (const [number, asked] of cases.entries()) await measureOne(`case ${number}`, asked)
    for (const { path, ...question } of await listQuestions(get))
      await measureOne(question.what, { ...question, ask: async () => void (await get(path)) })
  } finally {
    await close()
    await started.stop()
  }
}

/** A question that takes long is asked fewer times. */
const longestMs = 4_000

async function measure(
  { database }: Kept,
  { ask }: Case,
  times: number,
): Promise<Figures | { readonly failure: string }> {
  const tookMs: number[] = []
  const cpuMs: number[] = []
  try {
    // It fills the caches, and opens the connections that are measured.
    await ask()
    const pids = await sessionsOf(database, ['gatewright-api', benchProgram])
    const end = performance.now() + longestMs
    for (let time = 0; time < times && (time < 3 || performance.now() < end); time += 1) {
      const cpu = cpuMsOfSessions(pids)
      const began = performance.now()
      await ask()
      tookMs.push(performance.now() - began)
      cpuMs.push(cpuMsOfSessions(pids) - cpu)
    }
  } catch (error) {
    return { failure: String(error) }
  }
  const sorted = (numbers: number[]) => numbers.toSorted((one, other) => one - other)
  return { p50: quantile(sorted(tookMs), 0.5), p95: quantile(sorted(tookMs), 0.95), cpu: quantile(sorted(cpuMs), 0.5) }
}

const figuresOf = (line: Line, users: number): Figures | undefined => {
  const found = line.bySize.get(users)
  return found !== undefined && 'cpu' in found ? found : undefined
}

const failureOf = ({ bySize }: Line): string | undefined =>
  [...bySize.values()].map((each) => ('failure' in each ? each.failure : undefined)).find((each) => each !== undefined)

/** Characters of the first column. */
const nameWidth = 64

function printHead(users: number): void {
  const sizes = [smallUsers, users].map((size) => `${size.toLocaleString('en')} users`.padStart(27))
  console.log(`${''.padEnd(nameWidth)}${sizes.join('')}`)
  console.log(
    `${''.padEnd(nameWidth)}${['p50', 'p95', 'CPU', 'p50', 'p95', 'CPU'].map((name) => name.padStart(9)).join('')}`,
  )
}

function printLine(line: Line, users: number): void {
  const cells = [smallUsers, users].flatMap((size) => {
    const figures = figuresOf(line, size)
    return figures === undefined ? ['', '', ''] : [figures.p50, figures.p95, figures.cpu].map((ms) => ms.toFixed(1))
  })
  const numbers = cells.map((cell) => cell.padStart(9)).join('')
  console.log(`${line.what.padEnd(nameWidth)}${numbers} ${markOf(line, users)}`.trimEnd())
}

function printSum(lines: readonly Line[], users: number): void {
  const [failed, above] = [lines.filter(failureOf), lines.filter((line) => isAbove(line, users))]
  console.log(
    `\n${lines.length} questions; ${above.length} above their limit of CPU of PostgreSQL, ${failed.length} failed`,
  )
}

const isAbove = (line: Line, users: number): boolean => (figuresOf(line, users)?.cpu ?? 0) > line.mostMs

function markOf(line: Line, users: number): string {
  const failure = failureOf(line)
  if (failure !== undefined) return `FAILED: ${failure}`
  return [...(isAbove(line, users) ? [`ABOVE ${line.mostMs} ms`] : []), ...(line.fact === '' ? [] : [line.fact])].join(
    '; ',
  )
}
