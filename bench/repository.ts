import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { makeRepository, secrets } from '../test/e2e/repository/make.ts'
import { plainEnvironment } from '../test/support/environment.ts'
import { median } from './measure.ts'
import { openDatabase, openStand } from './stand.ts'

/**
 * How long `gatewright plan` of a folder takes that stands as its files say: forty files of twenty teams, as one document.
 * The floor is `gatewright validate` of the same folder, which reads and checks the files without a service.
 */

export const usage = `npm run bench -- repository [options]
  --sizes <n,n>  applications of the folder, multiples of 20 (300,4980: with their providers, one document has 10,000 entries)
  --turns <n>    of each program (5)`

const program = join(fileURLToPath(new URL('../', import.meta.url)), 'bin', 'gatewright.mjs')
const timeoutMs = 300_000
const teams = 20

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { sizes: { type: 'string', default: '300,4980' }, turns: { type: 'string', default: '5' } },
  })
  const sizes = values.sizes.split(',').map(Number)
  const turns = Number(values.turns)
  if (!(turns >= 1 && turns <= 100)) throw new Error('--turns takes a number from 1 to 100')
  if (!sizes.every((size) => size >= teams && size <= 4_980 && size % teams === 0))
    throw new Error(`--sizes takes multiples of ${teams} from ${teams} to 4980`)
  const database = await openDatabase(undefined)
  try {
    console.log(`${availableParallelism()} cores, Node ${process.version}, ${turns} turns; times in s`)
    for (const size of sizes) {
      const stand = await openStand(database, 'postgres')
      try {
        const { folder } = makeRepository(mkdtempSync(join(tmpdir(), 'gatewright-bench-')), size / teams)
        const env = { GATEWRIGHT_URL: stand.url, GATEWRIGHT_TOKEN: stand.token, ...secrets }
        const first = timeOf(['apply', folder, '--timeout', '300'], env)
        const found = { validate: [] as number[], plan: [] as number[] }
        for (let turn = 0; turn < turns; turn += 1)
          for (const command of ['validate', 'plan'] as const) found[command].push(timeOf([command, folder], env))
        const ratios = found.plan.map((time, turn) => time / (found.validate[turn] ?? Number.NaN))
        const [plan, floor] = [median(found.plan), median(found.validate)]
        console.log(
          `${size} applications: plan ${plan.toFixed(2)}, ${median(ratios).toFixed(1)}x validate (${floor.toFixed(2)}); first apply ${first.toFixed(2)}`,
        )
        rmSync(folder, { recursive: true })
      } finally {
        await stand.close()
      }
    }
  } finally {
    await database.close()
  }
}

/** @returns seconds @throws when it does not end with 0 */
function timeOf(args: readonly string[], env: Readonly<Record<string, string>>): number {
  const start = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
    timeout: timeoutMs,
    maxBuffer: 64 << 20,
    env: { ...plainEnvironment(), ...env },
  })
  if (status !== 0) throw new Error(`${args[0]} ended with ${status}: ${stderr.slice(0, 1_000)}${stdout.slice(-1_000)}`)
  return (performance.now() - start) / 1_000
}
