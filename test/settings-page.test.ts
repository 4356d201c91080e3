import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  ConfigError,
  readClientConfig,
  readConfig,
  readDatabaseConfig,
  readJobConfig,
  variableOf,
} from '../src/config.ts'

/** docs/settings.md, held against src/config.ts. */

const page = readFileSync(new URL('../docs/settings.md', import.meta.url), 'utf8')

type Row = { readonly name: string; readonly isSecret: boolean; readonly default: string; readonly takes: string }

/** The rows of the table below a heading. */
function rowsOf(heading: string): Row[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(/^\| `([A-Z_]+)`( \*)? \| (.*?) \| (.*?) \| .+ \|$/gm)].map(
    ([, name = '', mark, initial = '', takes = '']) => ({
      name,
      isSecret: mark !== undefined,
      default: initial,
      takes,
    }),
  )
}

const service = [...rowsOf('API and worker'), ...rowsOf('Traces')]
const client = rowsOf('The program `gatewright`')
const database = rowsOf('`npm run database`')

/** What a reader of settings says of values that none of them takes. */
function errorsOf(read: (env: Record<string, string>) => unknown, env: Record<string, string>): string[] {
  try {
    read(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n').map((line) => line.trim())
    throw error
  }
  return []
}

test('the page has each setting of API and worker, and no other', () => {
  expect(service.map(({ name }) => name).sort()).toEqual(Object.keys(readConfig({})).map(variableOf).sort())
})

test('the page has the default of each setting that has a fixed one', () => {
  const values = Object.entries(readConfig({})).map(([setting, value]) => [variableOf(setting), value])
  const fixed = values.filter(([name, value]) => typeof value === 'number' && name !== 'WORKER_CONCURRENCY')
  expect(fixed.length).toBeGreaterThan(10)
  for (const [name, value] of fixed)
    expect(service).toContainEqual(expect.objectContaining({ name, default: `\`${value}\`` }))
})

test('the page has the limits of each number', () => {
  const said = errorsOf(readConfig, Object.fromEntries(service.map(({ name }) => [name, 'x'])))
  const limits = said.flatMap((line) => {
    const [, name, range] = /^(\w+) is "x": it takes a whole number from (\d+ to \d+)\.$/.exec(line) ?? []
    return name === undefined ? [] : [[name, range]]
  })
  const shown = service.filter(({ takes }) => /^\d+ to \d+$/.test(takes)).map(({ name, takes }) => [name, takes])
  expect(limits.length).toBeGreaterThan(10)
  expect(shown.sort()).toEqual(limits.sort())
})

/** Settings that are read where no access token is stored. */
const ofJob = new Set(Object.keys(readJobConfig({})).map(variableOf))

test('the page marks those that a file may hold', () => {
  const rows = [
    ...service.map((row) => [row, readConfig] as const),
    ...client.map((row) => [row, ofJob.has(row.name) ? readJobConfig : readClientConfig] as const),
    ...database.map((row) => [row, readDatabaseConfig] as const),
  ]
  for (const [{ name, isSecret }, read] of rows) {
    const errors = errorsOf(read, { [`${name}_FILE`]: '/nothing/here' })
    const reads = errors.some((line) => line.startsWith(`${name}_FILE: /nothing/here cannot be read`))
    expect([name, reads]).toEqual([name, isSecret])
  }
})

test('the page has the settings of the program and of npm run database', () => {
  expect(client.map(({ name }) => name)).toEqual([
    'GATEWRIGHT_URL',
    'GATEWRIGHT_TOKEN',
    'GATEWRIGHT_ID_TOKEN',
    'GATEWRIGHT_AUDIENCE',
    'GATEWRIGHT_ENV',
    'GATEWRIGHT_OWNER',
    'GATEWRIGHT_REQUEST_ID',
  ])
  const required = database.filter((row) => row.default === 'required').map(({ name }) => `${name} is required.`)
  expect(errorsOf(readDatabaseConfig, {}).slice(1).sort()).toEqual(required.sort())
})
