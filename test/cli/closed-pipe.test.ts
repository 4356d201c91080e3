import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { guard } from '../support/guard.ts'
import { adminToken, compileCache, freshFolder, listening, plainEnvironment } from '../support/kit.ts'

/** Pipes of real processes whose reader leaves: `gatewright apply --each DIR | head -1`. */

const program = fileURLToPath(new URL('../../bin/gatewright.mjs', import.meta.url))
const folder = freshFolder()
const there = await listening({ GATEWRIGHT_TOKEN: adminToken })
for (const name of ['first', 'second']) file(name)
await there.gatewright(['apply', folder])

function file(name: string, below = folder): string {
  const path = join(below, `${name}.json`)
  const entries = [{ model: 'service_core.group', identifiers: { name }, attrs: { attributes: { name } } }]
  writeFileSync(path, JSON.stringify({ version: 1, metadata: { name }, entries }))
  return path
}

/** @param reader a command of the shell. @returns the exit code, what the reader printed, and what was printed beside the pipe */
async function piped(args: readonly string[], reader: string, { all = false } = {}) {
  const script = `{ "$@" ${all ? '2>&1' : ''}; echo $? >&3; } | ${reader}`
  const child = spawn('sh', ['-c', script, 'sh', process.execPath, program, ...args], {
    env: { ...plainEnvironment(), ...compileCache, GATEWRIGHT_URL: there.address, GATEWRIGHT_TOKEN: adminToken },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
  })
  const release = guard({ pid: child.pid ?? 0, signal: 'KILL' })
  const [printed = '', beside = '', code] = await Promise.all(
    [1, 2, 3].map((stream) => text(child.stdio[stream] as NodeJS.ReadableStream)),
  )
  release()
  return { code: Number(code), printed, beside }
}

const gone = ': <&-; exec true'

test('apply --each goes on with all files, and ends with their code', async () => {
  const many = freshFolder()
  const names = Array.from({ length: 12 }, (_, index) => `each-${index + 10}`)
  for (const name of names) file(name, many)
  expect(await piped(['apply', '--each', many], 'head -1')).toEqual({
    code: 0,
    printed: expect.stringMatching(/^applied +\S+each-10\.json\n$/),
    beside: '',
  })
  expect(await there.on.db.group.count({ where: { name: { in: names } } })).toBe(names.length)
})

test.each([
  ['apply', 0, () => ['apply', folder]],
  ['plan', 2, () => ['plan', file('planned', freshFolder())]],
  ['plan of an error', 1, () => ['plan', '--owner', 'x,y', folder]],
  ['plan --full', 2, () => ['plan', '--full', file('differs', freshFolder()), '--json']],
  ['validate', 0, () => ['validate', folder]],
  ['import', 1, () => ['import', file('imported', freshFolder()), '--context', 'a']],
  ['export', 0, () => ['export']],
  ['runs', 0, () => ['runs', '--json']],
  ['logs', 0, () => ['logs']],
  ['token create', 0, () => ['token', 'create', 'unread']],
  ['validate --schema', 0, () => ['validate', '--schema']],
  ['help', 0, () => ['--help']],
  ['an unknown command', 1, () => ['explain']],
])('without a reader of both streams, %s ends with %i', async (_, code, args) => {
  expect(await piped(args(), gone, { all: true })).toEqual({ code, printed: '', beside: '' })
})

test('a summary without a reader is no error', async () => {
  expect(await piped(['apply', folder, '--summary', '/dev/stdout'], gone)).toMatchObject({ code: 0 })
})

test('of much more than a pipe holds, a reader gets what it reads, and all of it when it stays', async () => {
  expect(await piped(['validate', '--schema'], 'head -c 100000 | wc -c')).toEqual({
    code: 0,
    printed: '100000\n',
    beside: '',
  })
  const whole = await piped(['validate', '--schema'], 'cat')
  expect(whole.printed.length).toBeGreaterThan(200_000)
  expect(() => JSON.parse(whole.printed)).not.toThrow()
})
