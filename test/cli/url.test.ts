import { expect, test } from 'vitest'
import { freshFolder, run } from '../support/kit.ts'

/** `npm run -s url`, as a process. test/e2e/standalone.test.ts has the embedded database. */

const [pooled, direct] = ['postgresql://me:p%40ss@pooler.test/gw', 'postgresql://me:p%40ss@db.test/gw?sslmode=require']

test.each<[string, Record<string, string>, number, RegExp]>([
  ['DATABASE_URL', { DATABASE_URL: direct }, 0, /^postgresql:\/\/me:p%40ss@db\.test\/gw\?sslmode=require\n$/],
  ['the URL past a pooler', { DATABASE_URL: pooled, DIRECT_DATABASE_URL: direct }, 0, /^\S+@db\.test\S+\n$/],
  ['what is missing', { DATA_DIR: freshFolder() }, 1, /^Nothing runs on DATA_DIR .*\n$/],
])('prints %s', async (_, env, code, output) => {
  const running = run('src/cli/url.ts', { env })
  expect(await running.exited).toEqual({ code, signal: null })
  expect(running.output()).toMatch(output)
})
