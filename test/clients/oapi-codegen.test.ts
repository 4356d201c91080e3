import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { adminToken, needs } from '../support/kit.ts'
import { expectDriven, openStand } from './stand.ts'

const generator = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const runtime = 'github.com/oapi-codegen/runtime@v1.8.0'

describe.runIf(needs('go'))('a Go client by oapi-codegen', () => {
  test('compiles, and a minimal second PUT changes nothing', { timeout: 420_000 }, async () => {
    const stand = await openStand()
    for (const folder of ['gatewright', 'drive']) mkdirSync(join(stand.folder, folder))
    const what = ['-generate', 'types,client', '-package', 'gatewright', '-o', 'gatewright/client.go', 'schema.json']
    const { stderr } = await stand.run('go', ['run', generator, ...what])
    expect(stderr).not.toMatch(/error|warning/i)
    cpSync(fileURLToPath(new URL('oapi-codegen/drive.go', import.meta.url)), join(stand.folder, 'drive/drive.go'))
    await stand.run('go', ['mod', 'init', 'example.com/gatewright/client'])
    await stand.run('go', ['get', runtime])
    await stand.run('go', ['build', '-o', 'driver', './drive'])
    const { stdout } = await stand.run('./driver', [stand.url, adminToken, 'oapi'])
    await expectDriven(stdout, 'oapi', stand.db)
  })
})
