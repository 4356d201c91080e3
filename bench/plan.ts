import { parseArgs } from 'node:util'
import { measureIn } from './child.ts'
import type { LoadTask } from './load.ts'
import type { Measured } from './measure.ts'
import { openDatabase, openStand } from './stand.ts'

/**
 * What a plan costs beside an apply, and a re-apply that changes nothing beside the first. The three take turns, so that
 * the machine is as noisy for each.
 */

export const usage = `npm run bench -- plan [options]
  --backend <redis|postgres>  where the queue lives (redis)
  --clients <n>               clients at once (1)
  --seconds <n>               for each turn (4)
  --turns <n>                 of each kind (5)`

const kinds = ['apply', 'plan', 'again'] as const

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      backend: { type: 'string', default: 'redis' },
      clients: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '4' },
      turns: { type: 'string', default: '5' },
    },
  })
  const { backend } = values
  if (backend !== 'redis' && backend !== 'postgres') throw new Error(`--backend ${backend}: it takes redis or postgres`)
  const load = { clients: Number(values.clients), seconds: Number(values.seconds) }
  const database = await openDatabase(undefined)
  try {
    const stand = await openStand(database, backend, { nodeOptions: '', worker: 'pipelined' })
    const run = (what: (typeof kinds)[number], prefix: string, seconds = load.seconds) =>
      measureIn('load.ts', {
        ...{ url: stand.url, token: stand.token, prefix, what, clients: load.clients, seconds },
      } satisfies LoadTask)
    try {
      for (const kind of kinds) await run(kind, `warm-${kind}`, 15)
      const found = new Map<string, Measured[]>()
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

const median = (numbers: number[]) =>
  numbers.sort((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN

function print(found: ReadonlyMap<string, readonly Measured[]>): void {
  const p50 = (kind: string) => median((found.get(kind) ?? []).map((each) => each.p50))
  const perSecond = (kind: string) => median((found.get(kind) ?? []).map((each) => each.perSecond))
  for (const [kind, measured] of found) {
    const failed = measured.reduce((sum, { failures }) => sum + failures, 0)
    const facts = [
      `p50 ${p50(kind).toFixed(2)} ms`,
      `${(p50(kind) / p50('apply')).toFixed(2)}x an apply`,
      `${perSecond(kind).toFixed(0)} per s`,
      ...(failed > 0 ? [`${failed} FAILED: ${measured.find(({ failure }) => failure !== null)?.failure}`] : []),
    ]
    console.log(`${kind.padEnd(6)} ${facts.join(', ')}`)
  }
}
