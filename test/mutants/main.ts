import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import type { Mutant } from './generate.ts'
import { type Lane, openLane } from './lanes.ts'
import { mutantsIn, rooms } from './rooms.ts'

/** `npm run mutants`: whether the tests notice small mistakes in the product. README.md beside this file has the options. */

const { values } = parseArgs({
  options: {
    room: { type: 'string' },
    file: { type: 'string', default: '' },
    why: { type: 'string', default: '' },
    sample: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 86_400_000)) },
    lanes: { type: 'string', default: String(Math.min(2, availableParallelism())) },
  },
})
const fail = (message: string): never => {
  console.error(message)
  process.exit(1)
}
const whole = (name: 'sample' | 'lanes'): number =>
  /^[1-9]\d{0,4}$/.test(values[name])
    ? Number(values[name])
    : fail(`--${name}: it takes a whole number from 1 to 99999`)

const { room, file, why, seed } = values
if (room !== undefined && !Object.hasOwn(rooms, room))
  fail(`--room ${room}: it takes one of ${Object.keys(rooms).join(', ')}`)
const isAsked = (mutant: Mutant) => mutant.file.includes(file) && mutant.why.includes(why)
/** The same number from each room. */
const drawn = Object.entries(rooms)
  .filter(([name]) => room === undefined || name === room)
  .flatMap(([name, { sources, tests }]) =>
    mutantsIn({ sources, tests }, seed)
      .filter(isAsked)
      .map((mutant, at) => ({ mutant, tests, name, at })),
  )
  .sort((one, other) => one.at - other.at)
  .slice(0, whole('sample'))
if (drawn.length === 0) fail('no mutant is in such a file, and wrong in such a way')

const startedAt = performance.now()
const lanes = Array.from({ length: whole('lanes') }, openLane)
const seconds = (since: number) => ((performance.now() - since) / 1_000).toFixed(1)
const survivors: typeof drawn = []
/** A test that fails anyway notices nothing. So each that noticed something runs once without a mutant, by its file. */
const alone = new Map<string, Promise<boolean>>()
const red: string[] = []

async function passesAlone(lane: Lane, test: string): Promise<boolean> {
  // A second try, because a busy machine is no mutant.
  const failure = (await lane.ask({ tests: [test] })) && (await lane.ask({ tests: [test] }))
  if (failure !== null) red.push(`${test}: ${failure.how}`)
  return failure === null
}

async function judge(lane: Lane, each: (typeof drawn)[number]): Promise<void> {
  const from = performance.now()
  const failure = await lane.ask(each)
  const took = seconds(from)
  if (failure === null) survivors.push(each)
  else await alone.getOrInsertComputed(failure.file, (test) => passesAlone(lane, test))
  console.log(`${failure === null ? 'SURVIVED' : 'noticed '} ${took} s ${each.mutant.file}: ${each.mutant.why}`)
  if (failure !== null) console.log(`         by ${failure.file}: ${failure.how}`)
}

/** Each mutant by the next lane that is free. */
async function drain(lane: Lane): Promise<void> {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) await judge(lane, next)
}

const queue = [...drawn]
try {
  await Promise.all(lanes.map(drain))
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await Promise.all(lanes.map((lane) => lane.close()))
}
if (process.exitCode === 1) process.exit()

if (red.length > 0) fail(`These tests fail without any mutant, so they notice nothing:\n${red.join('\n')}`)
const share = (all: number, survived: number) => `${all - survived} of ${all}`
for (const name of Object.keys(rooms)) {
  const of = (list: typeof drawn) => list.filter((each) => each.name === name).length
  if (of(drawn) > 0) console.log(`${name}: ${share(of(drawn), of(survivors))}`)
}
console.log(`${share(drawn.length, survivors.length)} mutants were noticed in ${seconds(startedAt)} s`)
console.log(
  `the same sample: npm run mutants -- ${room === undefined ? '' : `--room ${room} `}--sample ${values.sample} --seed ${seed}`,
)
process.exit(survivors.length > drawn.length / 10 ? 1 : 0)
