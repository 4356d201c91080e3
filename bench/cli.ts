import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './measure.ts'

/**
 * How long the program gatewright takes, from its start to its end: `--help`, and `validate` of many files. The floor is
 * an empty program of the same Node. All take turns, so that the machine is as noisy for each.
 */

export const usage = `npm run bench -- cli [options]
  --turns <n>  of each program (20)
  --files <n>  to validate (1000)`

const root = fileURLToPath(new URL('../', import.meta.url))
const timeoutMs = 60_000

export async function bench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { turns: { type: 'string', default: '20' }, files: { type: 'string', default: '1000' } },
  })
  const [turns, files] = [Number(values.turns), Number(values.files)]
  if (!(turns >= 1 && turns <= 1_000)) throw new Error('--turns takes a number from 1 to 1000')
  if (!(files >= 1 && files <= 100_000)) throw new Error('--files takes a number from 1 to 100000')
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-bench-'))
  try {
    writeSubmissions(join(folder, 'apps'), files)
    const gatewright = join(root, 'bin', 'gatewright.mjs')
    const programs: readonly (readonly [what: string, args: string[]])[] = [
      ['floor: node -e 0', ['-e', '0']],
      ['gatewright --help', [gatewright, '--help']],
      [`gatewright validate, ${files} files`, [gatewright, 'validate', join(folder, 'apps')]],
    ]
    const found = programs.map(([what, programArgs]) => ({ what, programArgs, timesMs: [] as number[] }))
    // The first turn fills the caches of the system.
    for (let turn = 0; turn <= turns; turn += 1)
      for (const { what, programArgs, timesMs } of found) {
        const tookMs = timeOf(what, programArgs)
        if (turn > 0) timesMs.push(tookMs)
      }
    console.log(`${availableParallelism()} cores, Node ${process.version}, ${turns} turns; times in ms`)
    const [floor] = found
    for (const { what, timesMs } of found) {
      const sorted = timesMs.toSorted((one, other) => one - other)
      const overFloor = timesMs.map((ms, turn) => ms - (floor?.timesMs[turn] ?? Number.NaN))
      const facts = [
        `median ${median(timesMs).toFixed(0)}`,
        `best ${sorted[0]?.toFixed(0)}`,
        `worst ${sorted.at(-1)?.toFixed(0)}`,
        `over the floor ${median(overFloor).toFixed(0)}`,
      ]
      console.log(`${what.padEnd(34)} ${facts.join(', ')}`)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function writeSubmissions(folder: string, count: number): void {
  mkdirSync(folder)
  const { app, ...others } = JSON.parse(readFileSync(join(root, 'examples/oauth2.json'), 'utf8'))
  for (let number = 1; number <= count; number += 1) {
    const slug = `app-${number}`
    writeFileSync(join(folder, `${slug}.json`), JSON.stringify({ app: { ...app, slug }, ...others }, null, 2))
  }
}

function timeOf(what: string, args: string[]): number {
  const start = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: timeoutMs })
  if (status !== 0) throw new Error(`${what} ended with ${status}: ${stderr.slice(0, 1_000)}`)
  return performance.now() - start
}
