import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { seeded } from '../simulation/random.ts'
import { type Lane, openLane } from './lanes.ts'
import { mutants, roomNames } from './list.ts'
import type { Placed } from './mutant.ts'

/**
 * `npm run mutants`: whether the tests notice each mutant. `-- --only ROOM`, `--file PART` and `--why PATTERN` choose some
 * of them, `--sample N` draws some, and `--lanes N` runs so many at the same time. Exits with 1 when less than nine of ten
 * are noticed, when one survives of which the list does not say why, and when one that the list gives up is noticed.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    file: { type: 'string', default: '' },
    why: { type: 'string', default: '' },
    sample: { type: 'string' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 86_400_000)) },
    lanes: { type: 'string', default: String(Math.min(2, availableParallelism())) },
  },
})
const fail = (message: string): never => {
  console.error(message)
  process.exit(1)
}
const whole = (name: 'sample' | 'seed' | 'lanes', text: string): number =>
  /^[1-9]\d{0,8}$/.test(text) ? Number(text) : fail(`--${name} ${text}: it takes a whole number from 1 to 999999999`)

const { only, file, why } = values
if (only !== undefined && !roomNames.includes(only)) fail(`--only ${only}: it takes one of ${roomNames.join(', ')}`)
const asked = mutants.filter(
  (each) => (only === undefined || each.room === only) && each.file.includes(file) && new RegExp(why).test(each.why),
)
const chosen = values.sample === undefined ? asked : sampleOf(asked, whole('sample', values.sample))
if (chosen.length === 0) fail('no mutant is in such a file, and broken in such a way')

/** Another sample each day, unless a seed is named. */
function sampleOf(all: readonly Placed[], count: number): Placed[] {
  const random = seeded(whole('seed', values.seed))
  const drawn = all.filter(({ survives }) => survives === undefined).map((each) => ({ each, at: random.next() }))
  return drawn
    .sort((one, other) => one.at - other.at)
    .slice(0, count)
    .map(({ each }) => each)
}

const startedAt = performance.now()
const lanes = Array.from({ length: whole('lanes', values.lanes) }, openLane)
const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(1)

/** Each item by the next lane that is free. */
async function share<Item>(items: readonly Item[], work: (lane: Lane, item: Item) => Promise<void>): Promise<void> {
  const queue = [...items]
  const drain = async (lane: Lane) => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(lane, item)
  }
  await Promise.all(lanes.map(drain))
}

const survivors: Placed[] = []
const revived: Placed[] = []
/** A test that fails anyway notices nothing. So each that noticed something runs once without a mutant, by its file. */
const alone = new Map<string, Promise<boolean>>()
const red: string[] = []

async function passesAlone(lane: Lane, file: string): Promise<boolean> {
  // A second try, because a busy machine is no mutant.
  const failure = (await lane.ask({ tests: [file] })) && (await lane.ask({ tests: [file] }))
  if (failure !== null) red.push(`${file}: ${failure.how}`)
  return failure === null
}

async function judge(lane: Lane, mutant: Placed): Promise<void> {
  const from = performance.now()
  const failure = await lane.ask({ mutant, tests: mutant.tests })
  const took = seconds(from)
  if (failure === null) survivors.push(mutant)
  else if (await alone.getOrInsertComputed(failure.file, (file) => passesAlone(lane, file))) {
    if (mutant.survives !== undefined) revived.push(mutant)
  }
  console.log(`${failure === null ? 'SURVIVED' : 'noticed '} ${took} s ${mutant.file}: ${mutant.why}`)
  if (failure !== null) console.log(`         by ${failure.file}: ${failure.how}`)
}

try {
  await share(chosen, judge)
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await Promise.all(lanes.map((lane) => lane.close()))
}
if (process.exitCode === 1) process.exit()

if (red.length > 0) fail(`These tests fail without any mutant, so they notice nothing:\n${red.join('\n')}`)
const noticed = chosen.length - survivors.length
const score = (100 * noticed) / chosen.length
for (const room of roomNames) {
  const all = chosen.filter((each) => each.room === room)
  if (all.length > 0)
    console.log(`${room}: ${all.length - survivors.filter((each) => each.room === room).length} of ${all.length}`)
}
console.log(`${noticed} of ${chosen.length} mutants were noticed (${score.toFixed(1)} %) in ${seconds(startedAt)} s`)
for (const { file, from, to, why, survives } of survivors)
  console.log(`survived: ${file}: ${why}\n  ${from}\n  ${to}\n  ${survives ?? 'the list does not say why'}`)
for (const { file, why } of revived) console.log(`noticed, although the list says that it survives: ${file}: ${why}`)
if (values.sample !== undefined)
  console.log(`the same sample: npm run mutants -- --sample ${values.sample} --seed ${values.seed}`)
const unexplained = survivors.filter(({ survives }) => survives === undefined)
process.exit(score < 90 || unexplained.length > 0 || revived.length > 0 ? 1 : 0)
