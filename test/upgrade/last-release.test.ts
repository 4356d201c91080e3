import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { emptyDatabase } from '../support/database.ts'
import { plainEnvironment } from '../support/environment.ts'
import { freshFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { kinds, named } from '../support/installation.ts'
import { wideEnv } from '../support/limits.ts'
import { needs } from '../support/needs.ts'
import { type Running, run } from '../support/processes.ts'
import { lastRelease } from '../support/release.ts'
import { until } from '../support/until.ts'

/** The last release, out of the history of this repository, beside this version, as in a rolling upgrade. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const { version, commit } = lastRelease()

test('CHANGELOG.md names the last release, with its commit', () => {
  expect([version, commit]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)])
})

/** A checkout of the release, with the packages of this version: their versions are the same, or newer. */
function checkout(): string {
  const folder = freshFolder()
  const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 100_000_000 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const prisma = join(root, 'node_modules/prisma/build/index.js')
  // As scripts/install.mjs does it: the client needs no engine.
  const env = { ...plainEnvironment(), PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }
  execFileSync(process.execPath, [prisma, 'generate', '--no-hints'], { cwd: folder, env, stdio: 'pipe' })
  return folder
}

type Api = { readonly process: Running; readonly url: string }

describe.runIf(needs('history'))('the last release beside this version', () => {
  test('reads what this version writes, and the other way round', { timeout: 240_000 }, async () => {
    const released = checkout()
    const token = randomBytes(24).toString('base64url')
    const env = {
      ...wideEnv,
      DATABASE_URL: await emptyDatabase(),
      SECRET_KEY: randomBytes(32).toString('base64url'),
      BOOTSTRAP_TOKEN: token,
      LOG_LEVEL: 'info',
    }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const startApi = async (cwd: string): Promise<Api> => {
      const port = await freePort()
      const process = run(join(cwd, 'src/server.ts'), { env: { ...env, PORT: String(port) }, cwd })
      await process.line(/"msg":"serving"/, { withinMs: 60_000 })
      return { process, url: `http://127.0.0.1:${port}` }
    }
    const startWorker = async (cwd: string) => {
      const worker = run(join(cwd, 'workers/blueprint.ts'), { env, cwd })
      await worker.line(/worker ready/, { withinMs: 60_000 })
      return worker
    }
    const get = async ({ url }: Api, path: string) => {
      const answer = await fetch(`${url}${path}`, { headers })
      return { status: answer.status, text: await answer.text() }
    }
    const ready = async (api: Api) => (await get(api, '/-/health/ready/')).status === 200
    /** One of each kind, and again with another secret, so that all that is sealed is written by both. */
    const putAll = async ({ url }: Api, prefix: string) => {
      const statuses: string[] = []
      for (const kind of [...kinds, ...kinds]) {
        const answer = await fetch(`${url}/api/v3/core/transactional/applications/`, {
          method: 'PUT',
          headers,
          body: JSON.stringify(await named(kind, `${prefix}-${kind.replaceAll('_', '-')}`)),
        })
        statuses.push(`${kind} ${answer.status} ${await answer.text()}`)
      }
      expect(statuses.filter((each) => !/^\S+ 200 \{"applied":true/.test(each))).toEqual([])
    }
    const readAll = async (api: Api) => {
      const bad: string[] = []
      for (const path of readPaths) {
        const { status, text } = await get(api, path)
        if (status !== 200) bad.push(`${path}: ${status} ${text.slice(0, 300)}`)
      }
      expect(bad).toEqual([])
    }

    const oldApi = await startApi(released)
    const oldWorker = await startWorker(released)
    await putAll(oldApi, 'before')
    // This version migrates, while the release serves.
    const newApi = await startApi(root)
    expect((await get(newApi, '/-/health/ready/')).text).toContain('replace the workers first')
    const newWorker = await startWorker(root)
    await oldWorker.stop()
    await until(() => ready(newApi), { what: 'the new API to be ready', withinMs: 30_000 })
    for (const [round, api] of [oldApi, newApi, oldApi, newApi].entries()) await putAll(api, `round-${round}`)
    // Each changes what the other wrote.
    await putAll(newApi, 'round-0')
    await putAll(oldApi, 'round-1')
    for (const api of [oldApi, newApi]) await readAll(api)
    await Promise.all([oldApi.process.stop(), newApi.process.stop(), newWorker.stop()])
  })
})

const readPaths = [
  ...['/core/applications/', '/providers/all/', '/core/groups/?include_users=true', '/core/users/', '/core/tokens/'],
  ...['/rbac/roles/', '/flows/instances/', '/propertymappings/all/', '/crypto/certificatekeypairs/'],
  ...['/blueprints/runs/', '/core/users/me/'],
].map((path) => `/api/v3${path}`)
