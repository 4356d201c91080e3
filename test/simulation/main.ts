import { parseArgs } from 'node:util'
import { type Flaw, flawNames } from './flaws.ts'
import { addUp, simulateAll } from './many.ts'
import { simulate } from './simulate.ts'

/**
 * `npm run simulation [-- --seeds N]`: simulations of runs, with the seeds from 1 to N. Exits with 1 when a promise is
 * broken in one of them. `-- --seed S` replays one and prints what happens in it.
 */

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100000' },
    seed: { type: 'string' },
    mutant: { type: 'string' },
  },
})

const whole = (name: 'seed' | 'seeds', text: string): number => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  console.error(`--${name} ${text}: it takes a whole number from 1 to 999999999`)
  process.exit(1)
}
const flaw: Flaw | undefined = flawNames.find((each) => each === values.mutant)
if (values.mutant !== undefined && flaw === undefined) {
  console.error(`--mutant ${values.mutant}: it takes one of ${flawNames.map((each) => `"${each}"`).join(', ')}`)
  process.exit(1)
}

// No exit by force: that loses lines that the reader of a pipe has not taken yet.
process.exitCode = values.seed === undefined ? await all(values.seeds) : await one(values.seed)

async function one(seed: string): Promise<number> {
  const { broken } = await simulate(whole('seed', seed), { flaw, trace: (line) => console.log(line) })
  console.log(broken.length === 0 ? 'all promises hold' : `broken: ${broken.join('; ')}`)
  return broken.length === 0 ? 0 : 1
}

async function all(seeds: string): Promise<number> {
  const count = whole('seeds', seeds)
  const startedAt = performance.now()
  const tally = addUp()
  const failed = await simulateAll({ count, flaw, onEnd: tally.add })
  const seconds = (performance.now() - startedAt) / 1_000
  if (failed !== undefined) {
    console.error(`seed ${failed.seed}: ${failed.broken.join('; ')}`)
    const mutant = flaw === undefined ? '' : ` --mutant "${flaw}"`
    console.error(`Replay it: npm run simulation -- --seed ${failed.seed}${mutant}`)
    return 1
  }
  console.log(`${count} seeds in ${seconds.toFixed(1)} s: all promises hold`)
  for (const line of tally.lines()) console.log(line)
  return 0
}
