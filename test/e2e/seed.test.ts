import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort, freshFolder, run } from '../support/kit.ts'

test('the seed finds the database of a running start, whose API accepts the token that it prints', async () => {
  const port = String(await freePort())
  const env = { DATA_DIR: join(freshFolder(), 'data'), PORT: port }
  const server = run('src/standalone/main.ts', { env })
  await server.line(/Ctrl-C stops everything/)

  const seeding = run('tools/seed/main.ts', { args: ['--users', '100'], env })
  expect(await seeding.exited).toEqual({ code: 0, signal: null })
  const [, token = ''] = await seeding.line(/its token, for a year: (\S+)/)
  const runs = `http://127.0.0.1:${port}/api/v3/blueprints/runs/00000000-0000-4000-8000-000000000000/`
  const status = async (bearer: string) =>
    (await fetch(runs, { headers: { authorization: `Bearer ${bearer}` } })).status
  expect([await status(token), await status(`${token}x`)]).toEqual([404, 401])
  await server.stop()

  const late = run('tools/seed/main.ts', { env })
  expect((await late.exited).code).toBe(1)
  expect(late.output()).toContain('Nothing runs on DATA_DIR')
}, 90_000)
