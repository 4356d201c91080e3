import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { adminToken, needs } from '../support/kit.ts'
import { expectDriven, openStand, pythonPackages } from './stand.ts'

describe.runIf(needs('python3'))('a client by openapi-python-client', () => {
  test('has every operation, and a minimal second PUT changes nothing', { timeout: 300_000 }, async () => {
    const stand = await openStand()
    const program = await pythonPackages(stand, ['openapi-python-client==0.29.1'])
    const target = ['--meta', 'none', '--output-path', 'gatewright_client']
    const { stdout, stderr } = await stand.run(program('openapi-python-client'), [
      ...['generate', '--path', 'schema.json'],
      ...target,
    ])
    // It knows no YAML; of the blueprint it makes the JSON body.
    expect(`${stdout}${stderr}`.match(/WARNING.*|Unable.*/g)).toEqual([
      'WARNING parsing PUT /api/v3/blueprints/ within blueprints.',
    ])
    await stand.run(program('python'), ['-m', 'compileall', '-q', 'gatewright_client'])
    cpSync(fileURLToPath(new URL('openapi-python-client/drive.py', import.meta.url)), join(stand.folder, 'drive.py'))
    const driven = await stand.run(program('python'), ['drive.py', stand.url, adminToken, 'wiki'])
    await expectDriven(driven.stdout, 'wiki', stand.db)
  })
})
