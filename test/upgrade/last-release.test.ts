import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { crowd, type Target } from '../faults/clients.ts'
import { kinds, named } from '../support/examples.ts'
import { emptyDatabase, freePort, freshFolder, needs, plainEnvironment, until, wideEnv } from '../support/kit.ts'
import { type Running, run } from '../support/processes.ts'
import { lastRelease } from '../support/release.ts'

/** The last release, out of the history of this repository, beside this version, as in a rolling upgrade. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const { version, commit } = lastRelease()
/** This many in each order. */
const manyPuts = 500

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
  // The client needs no engine: scripts/install.mjs does the same.
  const env = { ...plainEnvironment(), PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }
  execFileSync(process.execPath, [prisma, 'generate', '--no-hints'], { cwd: folder, env, stdio: 'pipe' })
  return folder
}

type Api = Target & { readonly process: Running }

/** An installation of which each process is of either version. */
async function mixed() {
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
    return { process, token, url: `http://127.0.0.1:${port}` }
  }
  /** @param until what it logs then */
  const startWorker = async (cwd: string, until = /worker ready/) => {
    const worker = run(join(cwd, 'workers/blueprint.ts'), { env, cwd })
    await worker.line(until, { withinMs: 60_000 })
    return worker
  }
  const get = async ({ url }: Api, path: string) => {
    const answer = await fetch(`${url}${path}`, { headers })
    return { status: answer.status, text: await answer.text() }
  }
  const readiness = (api: Api) => get(api, '/-/health/ready/')
  const untilReady = (api: Api) =>
    until('the API to be ready', async () => (await readiness(api)).status === 200, { withinMs: 30_000 })
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
  /** The same number of PUTs to each API at once. */
  const putMany = async (apis: readonly Api[], prefix: string) => {
    const each = manyPuts / apis.length
    const sent = await Promise.all(
      apis.map((api, index) => crowd(api, 4, `${prefix}-${index}`, (begun) => begun >= each)),
    )
    expect(sent.flat().filter(({ outcome }) => outcome !== 'applied')).toEqual([])
  }
  const readAll = async (api: Api) => {
    const bad: string[] = []
    for (const path of readPaths) {
      const { status, text } = await get(api, path)
      if (status !== 200) bad.push(`${path}: ${status} ${text.slice(0, 300)}`)
    }
    expect(bad).toEqual([])
  }
  return { startApi, startWorker, readiness, untilReady, putAll, putMany, readAll }
}

describe.runIf(needs('history'))('the last release beside this version', () => {
  let released = ''
  beforeAll(() => {
    released = checkout()
  })

  test('an API first: each reads what the other writes, and readiness names the workers', {
    timeout: 240_000,
  }, async () => {
    const { startApi, startWorker, readiness, untilReady, putAll, putMany, readAll } = await mixed()
    const oldApi = await startApi(released)
    const oldWorker = await startWorker(released)
    await putAll(oldApi, 'before')
    // This version migrates, while the release serves.
    const newApi = await startApi(root)
    expect((await readiness(newApi)).text).toContain('replace the workers first')
    const newWorker = await startWorker(root)
    await oldWorker.stop()
    await untilReady(newApi)
    for (const [round, api] of [oldApi, newApi, oldApi, newApi].entries()) await putAll(api, `round-${round}`)
    // Each changes what the other wrote.
    await putAll(newApi, 'round-0')
    await putAll(oldApi, 'round-1')
    for (const api of [oldApi, newApi]) await readAll(api)
    await putMany([oldApi, newApi], 'many')
    await Promise.all([oldApi.process.stop(), newApi.process.stop(), newWorker.stop()])
  })

  test('a worker first: it waits, the release goes on, and readiness names the API', { timeout: 240_000 }, async () => {
    const { startApi, startWorker, readiness, untilReady, putAll, putMany, readAll } = await mixed()
    const oldApi = await startApi(released)
    const oldWorker = await startWorker(released)
    await putAll(oldApi, 'before')
    const newWorker = await startWorker(root, /waiting for the migrations of this version/)
    await until('readiness to name the API', async () =>
      (await readiness(oldApi)).text.includes('replace an API first'),
    )
    expect((await readiness(oldApi)).status).toBe(200)
    await putAll(oldApi, 'meanwhile')
    const newApi = await startApi(root)
    await newWorker.line(/worker ready/, { withinMs: 60_000 })
    await oldWorker.stop()
    await untilReady(newApi)
    await putAll(newApi, 'before')
    await putAll(oldApi, 'meanwhile')
    for (const api of [oldApi, newApi]) await readAll(api)
    await putMany([oldApi, newApi], 'many')
    await Promise.all([oldApi.process.stop(), newApi.process.stop(), newWorker.stop()])
  })
})

const readPaths = [
  ...['/core/applications/', '/providers/all/', '/core/groups/?include_users=true', '/core/users/', '/core/tokens/'],
  ...['/rbac/roles/', '/flows/instances/', '/propertymappings/all/', '/crypto/certificatekeypairs/'],
  ...['/blueprints/runs/', '/core/users/me/'],
].map((path) => `/api/v3${path}`)
