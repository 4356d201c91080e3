import { expect, test } from 'vitest'
import { bootstrap } from '../../src/bootstrap.ts'
import { grouped, progressBar } from '../../src/cli/progress.ts'
import { counts } from '../support/contents.ts'
import { freshDatabase } from '../support/database.ts'
import { adminToken, loadEngine, secretKey } from '../support/engine.ts'
import { freshFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/processes.ts'

const engine = await loadEngine()
const empty = freshFolder()

async function said(args: string[], env: Record<string, string> = {}) {
  const command = run('src/cli/seed.ts', { args, env: { DATA_DIR: empty, ...env } })
  const { code } = await command.exited
  return { code, output: command.output() }
}

test('--help says what there is', async () => {
  const { code, output } = await said(['--help'])
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
  const { code, output } = await said(args, env)
  expect(code).toBe(1)
  expect(output).toContain(sentence)
  expect(output).not.toMatch(/^ {4}at /m)
})

test('a database that is away is one sentence', async () => {
  const DATABASE_URL = `postgresql://ada:hidden@127.0.0.1:${await freePort()}/gatewright`
  const { code, output } = await said([], { DATABASE_URL, SECRET_KEY: secretKey })
  expect(code).toBe(1)
  expect(output).toContain('The database is away. Try again shortly. (ECONNREFUSED)')
  expect(output).not.toContain('hidden')
})

test('a database that nothing was started on, or under another key, is refused and stays as it is', async () => {
  const { url, db } = await freshDatabase()
  const refusal = await said(['--database', url], { SECRET_KEY: secretKey })
  expect(refusal).toMatchObject({ code: 1, output: expect.stringContaining('start it once first') })
  await bootstrap(db, engine, adminToken)
  const before = await counts(db)
  const other = await said(['--database', url], { SECRET_KEY: 'another secret key, 32 characters or more' })
  expect(other).toMatchObject({
    code: 1,
    output: expect.stringContaining('SECRET_KEY is not the one of this installation'),
  })
  expect(await counts(db)).toEqual(before)
})

test('a run without a terminal says each table in a line, and a second one that all is there', async () => {
  const { url, db } = await freshDatabase()
  await bootstrap(db, engine, adminToken)
  const env = { DATABASE_URL: url, SECRET_KEY: secretKey }
  const first = await said(['--users', '1200', '--seed', '9'], env)
  expect(first.code).toBe(0)
  expect(first.output).toMatch(/^ {2}users +1,200 +\d+\.\d s$/m)
  expect(first.output).toMatch(/^ {2}[\d,]+ rows in \d+\.\d s: [\d,]+ a second\.$/m)
  expect(first.output).not.toContain('\r')
  const second = await said(['--users', '1200', '--seed', '9'], env)
  expect(second).toMatchObject({ code: 0, output: expect.stringContaining('They are there already') })
})

test('on a terminal a bar fills in its line, and gives way to the line of what is done', () => {
  const shown: string[] = []
  const bar = progressBar({ isTTY: true, write: (text) => shown.push(text) })
  bar.begin('users')
  bar.progress(50, 100)
  bar.end(1_234)
  expect(shown[1]).toBe(`\r\x1b[2K  ${'users'.padEnd(22)}[${'#'.repeat(15)}${'.'.repeat(15)}]  50 %`)
  expect(shown.at(-1)).toBe(`\r\x1b[2K  ${'users'.padEnd(22)}     1,234     0.0 s\n`)
  expect(grouped(1_234_567)).toBe('1,234,567')
})
