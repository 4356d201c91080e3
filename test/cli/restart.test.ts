import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, freePort, freshDatabase, freshFolder, run, secretKey, until } from '../support/kit.ts'

/** `gatewright apply` while the API dies in the middle and comes back. */

const group = (name: string) =>
  `version: 1\nmetadata: { name: ${name} }\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} } }\n`

test('an apply goes through the death and the restart of the API: one run, and its outcome', async () => {
  const { url, db } = await freshDatabase()
  const env = {
    DATABASE_URL: url,
    SECRET_KEY: secretKey,
    BOOTSTRAP_TOKEN: adminToken,
    PORT: String(await freePort()),
  }
  const startApi = async () => {
    const api = run('src/server.ts', { env })
    await api.line(/"msg":"serving"/, { withinMs: 20_000 })
    return api
  }
  const first = await startApi()
  const worker = run('workers/blueprint.ts', { env })
  await worker.line(/"msg":"worker ready"/, { withinMs: 20_000 })
  const path = join(freshFolder(), 'group.yaml')
  writeFileSync(path, group('restarted'))

  worker.signal('SIGSTOP')
  const applying = run('bin/gatewright.mjs', {
    args: ['apply', path, '--timeout', '50'],
    env: { GATEWRIGHT_URL: `http://127.0.0.1:${env.PORT}`, GATEWRIGHT_TOKEN: adminToken },
  })
  await until('the run to be recorded', async () => (await db.run.count()) === 1, { withinMs: 10_000 })
  await first.kill()
  await applying.line(/^waiting: .* does not answer/)
  const second = await startApi()
  worker.signal('SIGCONT')

  expect(await applying.exited).toMatchObject({ code: 0 })
  expect(applying.output()).toMatch(/^applied +\S+group\.yaml\n +group "restarted" created/m)
  expect(await db.run.findMany({ select: { state: true, applied: true } })).toEqual([{ state: 'done', applied: true }])
  await worker.stop()
  await second.stop()
})
