import { parseArgs } from 'node:util'
import { measureIn } from './child.ts'
import { cpuSeconds } from './cpu.ts'
import type { LoadTask } from './load.ts'
import { type Measured, median } from './measure.ts'
import { openDatabase, openStand, type Stand } from './stand.ts'

/**
 * What a plan costs beside an apply, and a re-apply that changes nothing beside the first. The three take turns, so that
 * the machine is as noisy for each.
 */

export const usage = `npm run bench -- plan [options]
  --backend <redis|postgres>  where the queue lives (redis)
  --clients <n>               clients at once (1)
  --seconds <n>               for each turn (2)
  --turns <n>                 of each kind (15)`

const kinds = ['apply', 'plan', 'again'] as const

/** CPU milliseconds of all processes of the installation for one operation: they hardly depend on what else runs. */
type Turn = Measured & { readonly servedMs: number }

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'redis' },
      clients: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '2' },
      turns: { type: 'string', default: '15' },
    },
  })
  const { backend } = values
  if (backend !== 'redis' && backend !== 'postgres') throw new Error(`--backend ${backend}: it takes redis or postgres`)
  const load = { clients: Number(values.clients), seconds: Number(values.seconds) }
  const database = await openDatabase(undefined)
  try {
    const stand = await openStand(database, backend, { nodeOptions: '', worker: 'pipelined' })
    const run = async (what: (typeof kinds)[number], prefix: string, seconds = load.seconds): Promise<Turn> => {
      const before = cpuOf(stand)
      const measured = await measureIn('load.ts', {
        ...{ url: stand.url, token: stand.token, prefix, what, clients: load.clients, seconds },
      } satisfies LoadTask)
      return { ...measured, servedMs: ((cpuOf(stand) - before) * 1_000) / measured.count }
    }
    try {
      for (const kind of kinds) await run(kind, `warm-${kind}`, 15)
      const found = new Map<string, Turn[]>()
      for (let turn = 1; turn <= Number(values.turns); turn += 1)
        for (const kind of kinds) found.getOrInsertComputed(kind, () => []).push(await run(kind, `${kind}-${turn}`))
      print(found)
    } finally {
      await stand.close()
    }
  } finally {
    await database.close()
  }
}

const cpuOf = ({ processes }: Stand) => Object.values(processes).reduce((sum, pid) => sum + cpuSeconds(pid), 0)

/** Each turn is compared with the apply of the same turn: what else the machine does then slows both. */
function print(found: ReadonlyMap<string, readonly Turn[]>): void {
  const applies = found.get('apply') ?? []
  for (const [kind, measured] of found) {
    const times = ratio(measured.map(({ p50 }, turn) => p50 / (applies[turn]?.p50 ?? Number.NaN)))
    const cpu = ratio(measured.map(({ servedMs }, turn) => servedMs / (applies[turn]?.servedMs ?? Number.NaN)))
    const failed = measured.reduce((sum, { failures }) => sum + failures, 0)
    const facts = [
      `p50 ${median(measured.map(({ p50 }) => p50)).toFixed(2)} ms, ${times}`,
      `CPU ${median(measured.map(({ servedMs }) => servedMs)).toFixed(2)} ms, ${cpu}`,
      `${median(measured.map(({ perSecond }) => perSecond)).toFixed(0)} per s`,
      ...(failed > 0 ? [`${failed} FAILED: ${measured.find(({ failure }) => failure !== null)?.failure}`] : []),
    ]
    console.log(`${kind.padEnd(6)} ${facts.join(', ')}`)
  }
}

function ratio(ratios: readonly number[]): string {
  const [lowest, middle, highest] = [Math.min(...ratios), median(ratios), Math.max(...ratios)]
  return `${middle.toFixed(2)}x an apply (${lowest.toFixed(2)} to ${highest.toFixed(2)})`
}
