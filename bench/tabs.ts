import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { within } from '../test/support/template.ts'
import { measureIn } from './child.ts'
import { cpuSeconds } from './cpu.ts'
import type { LoadTask } from './load.ts'
import { type Measured, median, quantile } from './measure.ts'
import { openDatabase, openStand, type Stand } from './stand.ts'
import type { Seen, TabsTask } from './tab-clients.ts'

/**
 * Open pages beside applies: how long after its commit a run is on a page, and what the pages cost the applies. Each round
 * measures the applies alone and beside the pages.
 */

export const usage = `npm run bench -- tabs [options]
  --backend <redis|postgres>  where the queue lives (redis)
  --tabs <n>                  pages that are open (20)
  --rate <n>                  applies a second (50)
  --rounds <n>                of each (4)
  --seconds <n>               of one measurement (10)`

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'redis' },
      tabs: { type: 'string', default: '20' },
      rate: { type: 'string', default: '50' },
      rounds: { type: 'string', default: '4' },
      seconds: { type: 'string', default: '10' },
    },
  })
  const { backend } = values
  if (backend !== 'redis' && backend !== 'postgres') throw new Error(`--backend ${backend}: it takes redis or postgres`)
  const [tabs, rate, rounds, seconds] = [values.tabs, values.rate, values.rounds, values.seconds].map(Number)
  if (!tabs || !rate || !rounds || !seconds) throw new Error('--tabs, --rate, --rounds and --seconds take numbers')
  const database = await openDatabase(undefined)
  const stand = await openStand(database, backend)
  try {
    const load = (prefix: string, forS: number) =>
      measureIn('load.ts', {
        ...{ url: stand.url, token: stand.token, prefix, clients: 16, seconds: forS, perSecond: rate },
      } satisfies LoadTask)
    await measureIn('load.ts', { url: stand.url, token: stand.token, prefix: 'warm', clients: 8, seconds: 30 })
    const alone: Measured[] = []
    const beside: Measured[] = []
    const seen: Seen[][] = []
    for (let round = 1; round <= rounds; round += 1) {
      alone.push(await withCpu(stand, 'alone', () => load(`alone-${round}`, seconds)))
      // The pages are open before, and after.
      const pages = openTabs({ url: stand.url, token: stand.token, tabs, seconds: seconds + 2 })
      const applies = await withCpu(stand, `beside ${tabs} pages`, () => load(`beside-${round}`, seconds))
      beside.push(applies)
      seen.push(...(await pages))
    }
    const ended = await endsOf(stand)
    const lags = seen.flatMap((page) => lagsOf(page, ended)).toSorted((one, other) => one - other)
    const answers = seen.flatMap((page) => page.map(({ ms }) => ms)).toSorted((one, other) => one - other)
    for (const name of ['p50', 'p99'] as const) {
      const ratios = beside.map((each, index) => each[name] / (alone[index]?.[name] ?? Number.NaN))
      const of = (all: readonly Measured[]) => median(all.map((each) => each[name])).toFixed(1)
      console.log(
        `applies at ${rate}/s: ${name} ${of(alone)} ms alone, ${of(beside)} ms beside ${tabs} pages: ${median(ratios).toFixed(2)}x (${ratios.map((each) => each.toFixed(2)).join(', ')})`,
      )
    }
    const line = (sorted: readonly number[]) =>
      `p50 ${quantile(sorted, 0.5).toFixed(0)} ms, p95 ${quantile(sorted, 0.95).toFixed(0)} ms, p99 ${quantile(sorted, 0.99).toFixed(0)} ms`
    console.log(`from commit to the page, ${lags.length} times: ${line(lags)}`)
    console.log(`a page is answered, ${answers.length} times: ${line(answers)}`)
    const failures = [...alone, ...beside].reduce((sum, each) => sum + each.failures, 0)
    if (failures > 0) console.log(`${failures} applies FAILED: ${beside.find(({ failure }) => failure)?.failure}`)
  } finally {
    await stand.close()
    await database.close()
  }
}

async function openTabs(task: TabsTask): Promise<Seen[][]> {
  const path = fileURLToPath(new URL('tab-clients.ts', import.meta.url))
  const options = { timeout: (task.seconds + 60) * 1_000, maxBuffer: 2 ** 28 }
  const { stdout } = await promisify(execFile)(process.execPath, [path, JSON.stringify(task)], options)
  return JSON.parse(stdout)
}

async function withCpu<Result>({ processes }: Stand, what: string, work: () => Promise<Result>): Promise<Result> {
  const read = () => Object.entries(processes).map(([name, pid]) => ({ name, seconds: cpuSeconds(pid) }))
  const [start, before] = [performance.now(), read()]
  const result = await work()
  const tookMs = performance.now() - start
  const shares = read().map(
    ({ name, seconds }, index) =>
      `${name} ${(((seconds - (before[index]?.seconds ?? 0)) * 100_000) / tookMs).toFixed(0)} %`,
  )
  console.log(`${what}: ${shares.join(', ')} of a core`)
  return result
}

/** When each run ended, by its id. */
async function endsOf({ database }: Stand): Promise<Map<string, number>> {
  const text = 'SELECT id::text, finished_at AS at FROM runs WHERE finished_at IS NOT NULL'
  const { rows } = await within(database, (client) => client.query<{ id: string; at: Date }>(text))
  return new Map(rows.map(({ id, at }) => [id, at.getTime()]))
}

/** A page that shows a run shows all that ended before it: each of them is seen with the first such answer. */
function lagsOf(page: readonly Seen[], ended: ReadonlyMap<string, number>): number[] {
  const ends = [...ended.values()].toSorted((one, other) => one - other)
  const lags: number[] = []
  let next: number | undefined
  for (const { at, runs } of page) {
    const newest = Math.max(0, ...runs.map((id) => ended.get(id) ?? 0).filter((end) => end <= at))
    if (newest === 0) continue
    if (next === undefined) next = ends.findIndex((end) => end > newest)
    else
      while (next >= 0 && (ends[next] ?? Number.POSITIVE_INFINITY) <= newest) {
        lags.push(at - (ends[next] ?? 0))
        next += 1
      }
  }
  return lags
}
