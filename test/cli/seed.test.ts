import { cpSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { bootstrap } from '../../src/apply/bootstrap.ts'
import { grouped, progressBar } from '../../tools/seed/progress.ts'
import { exited } from '../support/gatewright.ts'
import { adminToken, counts, freePort, freshDatabase, freshFolder, loadEngine, run, secretKey } from '../support/kit.ts'

const engine = await loadEngine()
const empty = freshFolder()

async function seed(args: string[], env: Record<string, string> = {}, file = 'tools/seed/main.ts') {
  const command = run(file, { args, env: { DATA_DIR: empty, ...env } })
  const { code } = await command.exited
  return { code, output: command.output() }
}

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The seed of a copy of the project without these examples. */
function copyWithout(isMissing: (example: string) => boolean): string {
  const copy = freshFolder()
  for (const name of ['package.json', 'src', 'tools', 'prisma', 'examples'])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const name of readdirSync(join(copy, 'examples')).filter(isMissing)) rmSync(join(copy, 'examples', name))
  return relative(root, join(copy, 'tools/seed/main.ts'))
}

test('--help lists the options', async () => {
  const { code, output } = await seed(['--help'])
  expect(code).toBe(0)
  for (const flag of ['--users', '--groups', '--applications', '--seed', '--database']) expect(output).toContain(flag)
})

test.each([
  ['a flag that is wrong', ['--users', 'many'], {}, '--users is "many": it takes a whole number from 10 to 1000000.'],
  ['nowhere to write to', [], {}, `Nothing runs on DATA_DIR ${empty}: run npm start in another terminal`],
  [
    'a setting that is wrong',
    [],
    { DATABASE_URL: 'postgresql://db' },
    'SECRET_KEY is required when DATABASE_URL is set',
  ],
  ['no key', ['--database', 'postgresql://db'], {}, 'SECRET_KEY is not set'],
])('%s is one sentence', async (_, args, env, sentence) => {
  const { code, output } = await seed(args, env)
  expect(code).toBe(1)
  expect(output).toContain(sentence)
  expect(output).not.toMatch(/^ {4}at /m)
})

test('a database that is away is one sentence', async () => {
  const DATABASE_URL = `postgresql://ada:hidden@127.0.0.1:${await freePort()}/gatewright`
  const { code, output } = await seed([], { DATABASE_URL, SECRET_KEY: secretKey })
  expect(code).toBe(1)
  expect(output).toContain('The database is away. Try again shortly. (ECONNREFUSED)')
  expect(output).not.toContain('hidden')
})

test('a database that does not exist is one sentence', async () => {
  const { url } = await freshDatabase()
  const { code, output } = await seed(['--database', new URL('nowhere', url).href], { SECRET_KEY: secretKey })
  expect(code).toBe(1)
  expect(output).toContain('The database refuses: database "nowhere" does not exist.')
  expect(output).not.toMatch(/^ {4}at /m)
})

test('a database without an installation, or sealed under another key, is refused and stays as it is', async () => {
  const { url, db } = await freshDatabase()
  await exited(1, seed(['--database', url], { SECRET_KEY: secretKey }), 'start it once first')
  await bootstrap(db, engine, () => adminToken)
  const before = await counts(db)
  expect(
    (await exited(1, seed(['--database', url], { SECRET_KEY: 'another secret key, 32 characters or more' }))).output,
  ).toContain('SECRET_KEY is not the one of this installation')
  expect(await counts(db)).toEqual(before)
})

test('without a terminal it prints a line for each table, and the second time that all is there', async () => {
  const { url, db } = await freshDatabase()
  await bootstrap(db, engine, () => adminToken)
  const env = { DATABASE_URL: url, SECRET_KEY: secretKey }
  const first = await exited(0, seed(['--users', '1200', '--seed', '9'], env))
  expect(first.output).toMatch(/^ {2}users +1,200 +\d+\.\d s$/m)
  expect(first.output).toMatch(/^ {2}[\d,]+ rows in \d+\.\d s: [\d,]+ a second\.$/m)
  expect(first.output).not.toContain('\r')
  await exited(0, seed(['--users', '1200', '--seed', '9'], env), 'They are there already')
})

test('a kind without an example is skipped by name, and the others are seeded', async () => {
  const { url, db } = await freshDatabase()
  await bootstrap(db, engine, () => adminToken)
  const file = copyWithout((name) => name === 'radius.json')
  const { code, output } = await seed(['--users', '10'], { DATABASE_URL: url, SECRET_KEY: secretKey }, file)
  expect(output).toContain(
    'No radius providers are seeded: examples/radius.json, which they are made from, is missing.',
  )
  expect(code).toBe(0)
  const kinds = await db.provider.findMany({ select: { kind: true }, distinct: ['kind'] })
  expect(kinds.map(({ kind }) => kind).sort()).toEqual(
    [...engine.registry.kinds.keys()].filter((kind) => kind !== 'radius').sort(),
  )
})

test('a copy of the project without examples is refused as such, before the database is queried', async () => {
  const file = copyWithout((name) => name.endsWith('.json'))
  const { code, output } = await seed(
    [],
    { DATABASE_URL: 'postgresql://127.0.0.1:1/none', SECRET_KEY: secretKey },
    file,
  )
  expect(output).toContain('There are no examples')
  expect(output).not.toContain('database is away')
  expect(code).toBe(1)
})

test('on a terminal a bar fills in its line, until the line of the finished step replaces it', () => {
  const shown: string[] = []
  const bar = progressBar({ isTTY: true, write: (text) => shown.push(text) })
  bar.begin('users')
  bar.progress(50, 100)
  bar.end(1_234)
  expect(shown[1]).toBe(`\r\x1b[2K  ${'users'.padEnd(22)}[${'#'.repeat(15)}${'.'.repeat(15)}]  50 %`)
  expect(shown.at(-1)).toBe(`\r\x1b[2K  ${'users'.padEnd(22)}     1,234     0.0 s\n`)
  expect(grouped(1_234_567)).toBe('1,234,567')
})
