import { execFile } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { adminToken } from '../support/engine.ts'
import { freshFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { installation, named } from '../support/installation.ts'
import { needs } from '../support/needs.ts'
import { schemaPath } from '../support/openapi.ts'

const execute = promisify(execFile)
const generator = 'openapi-python-client==0.29.1'

describe.runIf(needs('python3'))('a client by openapi-python-client', () => {
  test('has every operation, and a minimal second PUT changes nothing', async () => {
    const folder = freshFolder()
    const there = await installation()
    const url = await there.app.listen({ host: '127.0.0.1', port: await freePort() })
    writeFileSync(join(folder, 'schema.json'), await (await fetch(`${url}${schemaPath}`)).text())
    await execute('python3', ['-m', 'venv', join(folder, 'venv')])
    const python = (program: string, ...args: string[]) =>
      execute(join(folder, 'venv/bin', program), args, { cwd: folder, timeout: 90_000 })
    await python('pip', 'install', '--quiet', '--disable-pip-version-check', generator)
    const target = ['--meta', 'none', '--output-path', 'gatewright_client']
    const { stdout, stderr } = await python('openapi-python-client', 'generate', '--path', 'schema.json', ...target)
    // It knows no YAML; of the blueprint it makes the JSON body.
    expect(`${stdout}${stderr}`.match(/WARNING.*|Unable.*/g)).toEqual([
      'WARNING parsing PUT /api/v3/blueprints/ within blueprints.',
    ])
    await python('python', '-m', 'compileall', '-q', 'gatewright_client')
    cpSync(fileURLToPath(new URL('drive.py', import.meta.url)), join(folder, 'drive.py'))
    const body = await named('oauth2', 'python', { provider: { access_token_validity: 'hours=2' } })
    const driven = await python('python', 'drive.py', url, adminToken, JSON.stringify(body))
    expect(JSON.parse(driven.stdout)).toEqual({
      first: [expect.stringMatching(/created/), expect.stringMatching(/created/)],
      second: ['provider oauth2 "python" unchanged', 'application "python" unchanged'],
      users: await there.db.user.count(),
    })
  }, 180_000)
})
