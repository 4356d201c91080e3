import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { registryEnvironment } from '../support/environment.ts'
import { adminToken, freePort, freshDatabase, freshFolder, needs, plainEnvironment } from '../support/kit.ts'
import { openTerminal, stepsOf } from '../support/page-commands.ts'
import { type Running, run } from '../support/processes.ts'
import { blocksOf } from '../support/shell.ts'
import { copyExample, openUser } from './sign-in-stand.ts'

/** docs/consumers.md: its commands in a shell, in their order, against an API and a worker as processes. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const steps = stepsOf(blocksOf(readFileSync(join(root, 'docs/consumers.md'), 'utf8')))

/** The last command of such a block runs until it is stopped. */
const isServer = (commands: string) => /\n(?:npm start|node .*)\n$/.test(commands)

describe.runIf(needs('curl'))('the commands of docs/consumers.md', () => {
  const folder = freshFolder()
  const bin = freshFolder()
  const PATH = [bin, dirname(process.execPath), plainEnvironment().PATH].join(delimiter)
  const real = new Map<string, string>()
  const terminal = openTerminal(folder, PATH, join(bin, 'environment'), real)
  const processes: Running[] = []

  beforeAll(async () => {
    const { url } = await freshDatabase()
    const ports = await Promise.all([freePort(), freePort(), freePort()])
    for (const [index, shown] of ['9000', '9400', '9500'].entries())
      real.set(`http://127.0.0.1:${shown}`, `http://127.0.0.1:${ports[index]}`)
    real.set('/tmp/clients.conf', join(bin, 'clients.conf'))
    const SECRET_KEY = 'a secret key for tests, 32 or more'
    const env = {
      DATABASE_URL: url,
      SECRET_KEY,
      BOOTSTRAP_TOKEN: adminToken,
      PORT: String(ports[0]),
      LOG_LEVEL: 'info',
    }
    for (const [file, line] of [
      ['src/server.ts', /"msg":"serving"/],
      ['workers/blueprint.ts', /"msg":"worker ready"/],
    ] as const) {
      const started = run(file, { env })
      processes.push(started)
      await started.line(line)
    }
    const hello = join(copyExample(folder), 'hello.yaml')
    writeFileSync(hello, readFileSync(hello, 'utf8').replace('http://127.0.0.1:9500', `http://127.0.0.1:${ports[2]}`))
    mkdirSync(join(folder, '.data'))
    writeFileSync(join(folder, '.data', 'admin-token'), `${adminToken}\n`)
    // The servers of the page listen on their usual ports.
    writeFileSync(join(bin, 'environment'), `export SIGN_IN_PORT=${ports[1]} APP_PORT=${ports[2]}\n`)
    // Where npx looks first, as in a checkout.
    mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
    symlinkSync(join(root, 'bin/gatewright.mjs'), join(folder, 'node_modules', '.bin', 'gatewright'))
  })

  afterAll(async () => {
    await Promise.all(processes.map((each) => each.stop()))
  })

  test.each(steps)('$commands', async (step) => {
    if (!isServer(step.commands)) return terminal.play(step)
    const script = join(bin, `${processes.length}.sh`)
    writeFileSync(script, `set -e\n${terminal.here(step.commands).replace(/\n(.*)\n$/, '\nexec $1\n')}`)
    const started = run(script, { node: '/bin/sh', cwd: folder, env: { ...registryEnvironment(), PATH } })
    processes.push(started)
    for (const line of step.output.trimEnd().split('\n')) {
      let text = line
      for (const [shown, value] of real) text = text.replaceAll(shown, value)
      expect(await started.line(new RegExp(RegExp.escape(text)))).not.toBeNull()
    }
  })

  test('sign a user in', async () => {
    const page = await openUser()(`${real.get('http://127.0.0.1:9500')}/sign-in`)
    expect(page.titles).toEqual(['Sign in to Hello', 'Allow access', 'Hello Alice Example'])
  })
})
