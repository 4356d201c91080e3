import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { withLogin } from '../../src/db/roles.ts'
import { freshDatabase } from '../support/database.ts'
import { plainEnvironment } from '../support/environment.ts'
import { freshFolder } from '../support/folder.ts'
import { run } from '../support/processes.ts'

/** `npm run psql`, as a process. */

let DATABASE_URL: string
let db: Db

beforeAll(async () => {
  const fresh = await freshDatabase()
  DATABASE_URL = fresh.url
  db = fresh.db
})

async function psql(args: string[], env: Record<string, string> = {}) {
  const running = run('src/cli/psql.ts', { args, env: { DATABASE_URL, ...env } })
  const { code } = await running.exited
  return { code, output: running.output() }
}

test('prints the rows of one statement', async () => {
  const statement = `SELECT n, NULLIF(t, 'b') AS t, '{1,2}'::int[] AS "list" FROM (VALUES (1, 'a'), (20, 'b')) AS v (n, t)`
  expect(await psql([statement])).toEqual({
    code: 0,
    output: [' n  | t | list', '----+---+-------', ' 1  | a | {1,2}', ' 20 |   | {1,2}', '(2 rows)', ''].join('\n'),
  })
})

test('counts all rows and prints the first 1000', async () => {
  const { code, output } = await psql(['SELECT g FROM generate_series(1, 2500) AS g'])
  expect([code, output.split('\n').length]).toEqual([0, 1_004])
  expect(output).toMatch(/\n 1000\n\(the first 1000 of 2500 rows\)\n$/)
})

test('a value cannot command the terminal, and a long one is cut', async () => {
  const { output } = await psql([`SELECT E'a\nb\x1b[31m\x7f\u202e' AS bad, repeat('x', 300) AS long`])
  expect(output).toContain(String.raw` a\nb\u001b[31m\u{7f}\u{202e} | ${'x'.repeat(200)}...`)
})

test('writes nothing, unless --write permits it', async () => {
  const statement = "INSERT INTO queue_pauses (queue, paused_by) VALUES ('made by hand', 'test')"
  expect(await psql([statement])).toEqual({
    code: 1,
    output: 'cannot execute INSERT in a read-only transaction. To write, add --write.\n',
  })
  expect(await psql(['COMMIT; DELETE FROM queue_pauses'])).toMatchObject({
    code: 1,
    output: expect.stringContaining('cannot insert multiple commands'),
  })
  expect(await db.queuePause.count()).toBe(0)
  expect(await psql(['--write', statement])).toEqual({ code: 0, output: 'INSERT 1\n' })
  expect(await db.queuePause.count()).toBe(1)
})

test.each<[string, string[], Record<string, string>, RegExp]>([
  ['a mistake in the statement', ['SELEC 1'], {}, /^syntax error at or near "SELEC"\.\n$/],
  ['a statement without quotes', ['SELECT', '1'], {}, /^Quote the statement/],
  ['an unknown option', ['--wirte'], {}, /^Unknown option '--wirte'/],
  ['no database', [], { DATABASE_URL: '', DATA_DIR: freshFolder() }, /^Nothing runs on DATA_DIR/],
  ['no server', ['SELECT 1'], { DATABASE_URL: 'postgresql://x:secret-word@127.0.0.1:1/x' }, /ECONNREFUSED/],
])('%s is a sentence, without a stack and without the password', async (_, args, env, message) => {
  const { code, output } = await psql(args, env)
  expect([code, output]).toEqual([1, expect.stringMatching(message)])
  expect(output).not.toMatch(/\n\s+at |secret-word/)
})

test('--url prints the URL for other programs', async () => {
  expect(await psql(['--url'])).toEqual({ code: 0, output: `${DATABASE_URL}\n` })
})

/** A folder with a program `psql` that prints what it was given, and ends with 3. */
function standIn(): string {
  const folder = freshFolder()
  const text = '#!/bin/sh\necho "arguments $*"\necho "password $PGPASSWORD"\necho "options $PGOPTIONS"\nexit 3\n'
  writeFileSync(join(folder, 'psql'), text)
  chmodSync(join(folder, 'psql'), 0o755)
  return folder
}

test('psql gets the password in its environment, never in its arguments', async () => {
  const url = `${withLogin('postgresql://db.test:5433/gw', { user: 'me', password: 'pa ss@1' })}?sslmode=require&password=pa&schema=public&options=-c%20work_mem%3D8MB`
  const env = { PATH: `${standIn()}:${plainEnvironment().PATH}`, DATABASE_URL: url }
  const { code, output } = await psql([], env)
  expect(code).toBe(3)
  expect(output.split('\n')).toEqual(
    expect.arrayContaining([
      'arguments postgresql://me@db.test:5433/gw?sslmode=require',
      'password pa ss@1',
      'options -c work_mem=8MB -c default_transaction_read_only=on',
    ]),
  )
  expect((await psql(['--write'], env)).output).toContain('options -c work_mem=8MB\n')
})

test('without psql on the machine, it names the packages', async () => {
  const { code, output } = await psql([], { PATH: freshFolder() })
  expect(code).toBe(1)
  expect(output).toMatch(/psql is not installed\. Its package is postgresql-client .*\n.* -- "SELECT \.\.\." runs one/)
})
