import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminToken, freePort, freshDatabase, freshFolder, needs, plainEnvironment } from '../support/kit.ts'
import { openTerminal, stepsOf } from '../support/page-commands.ts'
import { type Running, run } from '../support/processes.ts'
import { blocksOf, shellIn } from '../support/shell.ts'

/** docs/pipelines.md: its commands in a shell, in their order, against an API and a worker as processes. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'docs/pipelines.md'), 'utf8')
const blocks = blocksOf(page)
const snippets = ['github-actions.yml', 'gitlab-ci.yml']

/** Addresses as the page has them: the service, and one where nothing listens. */
const shownAddress = 'http://127.0.0.1:9000'
const shownAway = 'http://127.0.0.1:9009'

const steps = stepsOf(blocks)

/** A block of YAML says in its first line which file it is. */
const files = blocks.flatMap(({ info, text }) => {
  const [, path = ''] = info === 'yaml' ? (/^# (\S+\.ya?ml)\n/.exec(text) ?? []) : []
  return path === '' ? [] : [{ path, text }]
})

/** A folder with the files of the page, and the program on the PATH. */
function workplace() {
  const folder = freshFolder()
  for (const { path, text } of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const bin = freshFolder()
  const program = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'bin/gatewright.mjs')}' "$@"\n`
  writeFileSync(join(bin, 'gatewright'), program, { mode: 0o755 })
  return { folder, PATH: `${bin}:${plainEnvironment().PATH}`, state: join(bin, 'environment') }
}

describe.runIf(needs('curl'))('the commands of docs/pipelines.md', () => {
  let processes: Running[] = []
  const { folder, PATH, state } = workplace()
  const real = new Map<string, string>()
  const terminal = openTerminal(folder, PATH, state, real)

  beforeAll(async () => {
    const { url } = await freshDatabase()
    const PORT = String(await freePort())
    const SECRET_KEY = 'a secret key for tests, 32 or more'
    const env = { DATABASE_URL: url, SECRET_KEY, BOOTSTRAP_TOKEN: adminToken, PORT, LOG_LEVEL: 'info' }
    const api = run('src/server.ts', { env })
    processes = [api]
    await api.line(/"msg":"serving"/, { withinMs: 25_000 })
    const worker = run('workers/blueprint.ts', { env })
    processes = [api, worker]
    await worker.line(/"msg":"worker ready"/, { withinMs: 25_000 })
    real.set(shownAddress, `http://127.0.0.1:${PORT}`).set(shownAway, `http://127.0.0.1:${await freePort()}`)
    mkdirSync(join(folder, '.data'))
    writeFileSync(join(folder, '.data', 'admin-token'), `${adminToken}\n`)
  }, 60_000)

  afterAll(async () => {
    await Promise.all(processes.map((each) => each.stop()))
  })

  test('are found, with their files', () => {
    expect(steps.length).toBeGreaterThan(20)
    expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining(['deploy/grafana.yaml', 'deploy/vpn.yaml']))
  })

  test.each(steps)('$commands', (step) => terminal.play(step))
})

/** Every text in a document, at any depth. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

describe.each(snippets)('docs/snippets/%s', (name) => {
  const text = readFileSync(join(root, 'docs/snippets', name), 'utf8')
  const commands = textsIn(load(text))
    .flatMap((each) => each.split('\n'))
    .filter((each) => /^\s*gatewright /.test(each))

  test('is linked from the page, and has the three commands', () => {
    expect(page).toContain(`(snippets/${name})`)
    expect(new Set(commands.map((each) => each.split(' ')[1]))).toEqual(new Set(['validate', 'plan', 'apply']))
  })

  test.each(commands)('%s', async (command) => {
    const { folder, PATH } = workplace()
    const plans = [{ file: 'deploy/grafana.yaml and 1 more file', tag: 'x'.repeat(22) }]
    const url = `http://127.0.0.1:${await freePort()}`
    writeFileSync(join(folder, 'plans.json'), JSON.stringify({ version: 1, url, plans }))
    const env = { GATEWRIGHT_URL: url, GATEWRIGHT_TOKEN: 'gw_a_none', VPN_SHARED_SECRET: 'x'.repeat(30) }
    const GITHUB_STEP_SUMMARY = join(folder, 'step.md')
    // A usage error would be a 1: with these options the program gets as far as the service, which is away.
    const isOffline = command.startsWith('gatewright validate')
    const line = command.replace(' || [ $? -eq 2 ]', '') + (isOffline ? '' : ' --timeout 1')
    const ended = await shellIn(folder)(line, { ...env, PATH, GITHUB_STEP_SUMMARY })
    expect(ended.code, ended.output + ended.errors).toBe(isOffline ? 0 : 3)
  })
})
