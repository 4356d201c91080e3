import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { startVitest, type TestCase } from 'vitest/node'
import { gapsIn, rowName, testFiles } from './gaps.ts'
import type { Fault } from './record.ts'

/**
 * `npm run faults [-- --rounds N]`: the tests of faults, several times, and one table of what they found. Exits with 1
 * when a promise was broken, and when a file or a test did not run.
 */

type Row = {
  readonly name: string
  rounds: number
  failed: number
  requests: number
  readonly answers: Map<string, number>
  lost: number
  doubled: number
  half: number
  others: number
  recoveryMs: number | null
}

const rows = new Map<string, Row>()
/** What failed tests say, and tries that failed. */
const failures: string[] = []
/** Characters of the message of a failed test. */
const maxMessage = 4_000
/** What keeps the table from saying that all is well, although no row failed. */
const gaps: string[] = []
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } })
const rounds = /^[1-9]\d{0,2}$/.test(values.rounds) ? Number(values.rounds) : 0
if (rounds === 0) {
  console.error(`--rounds ${values.rounds}: it takes a whole number from 1 to 999`)
  process.exit(1)
}

for (let round = 1; round <= rounds; round += 1) {
  console.log(`round ${round} of ${rounds}`)
  const vitest = await startVitest('test', [], { project: ['faults', 'faults-roomy'], run: true, watch: false })
  const modules = vitest.state.getTestModules()
  for (const module of modules) for (const each of module.children.allTests()) add(each)
  const ran = modules.map((module) => ({
    file: basename(module.moduleId),
    errors: module.errors().map(({ message }) => message),
    states: [...module.children.allTests()].map((each) => each.result().state),
  }))
  const others = vitest.state.getUnhandledErrors().map((error) => String(error))
  gaps.push(...gapsIn(ran, testFiles(), others).map((gap) => `round ${round}: ${gap}`))
  await vitest.close()
}
print()
for (const each of [...gaps, ...failures]) console.error(each)
const isBroken = ({ failed, lost, doubled, half, others }: Row) => failed + lost + doubled + half + others > 0
process.exit(gaps.length > 0 || [...rows.values()].some(isBroken) ? 1 : 0)

function add(each: TestCase): void {
  const { fault, recoveryMs } = each.meta()
  const row = rows.getOrInsertComputed(each.fullName, (name) => ({
    ...{ name, rounds: 0, failed: 0, requests: 0, answers: new Map() },
    ...{ lost: 0, doubled: 0, half: 0, others: 0, recoveryMs: null },
  }))
  row.rounds += 1
  const { state, errors = [] } = each.result()
  if (state !== 'passed') row.failed += 1
  if (each.diagnostic()?.flaky === true) failures.push(`${rowName(each.fullName)}: passed when it was tried again`)
  for (const { message } of errors) failures.push(`${rowName(each.fullName)}: ${message.slice(0, maxMessage)}`)
  if (fault !== undefined) addFault(row, fault)
  if (recoveryMs !== undefined) row.recoveryMs = Math.max(row.recoveryMs ?? 0, recoveryMs)
}

function addFault(row: Row, { requests, answers, lost, doubled, half, others }: Fault): void {
  row.requests += requests
  row.lost += lost
  row.doubled += doubled
  row.half += half
  row.others += others
  for (const [status, count] of Object.entries(answers)) row.answers.set(status, (row.answers.get(status) ?? 0) + count)
}

/** A table in Markdown. docs/reliability.md has its first column. */
function print(): void {
  const columns = ['Fault', 'Rounds', 'Failed', 'PUTs', '200', '202', '503', 'Lost', 'Doubled', 'Half', 'Recovery, ms']
  const lines = [...rows.values()].map(({ name, answers, ...row }) => [
    ...[rowName(name), row.rounds, row.failed, row.requests || ''],
    ...['200', '202', '503'].map((status) => answers.get(status) ?? (row.requests > 0 ? 0 : '')),
    ...(row.requests > 0 ? [row.lost, row.doubled, row.half] : ['', '', '']),
    row.recoveryMs ?? '',
  ])
  for (const line of [columns, columns.map(() => '---'), ...lines]) console.log(`| ${line.join(' | ')} |`)
}
