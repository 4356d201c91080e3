import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { adminToken } from '../support/engine.ts'
import { freshFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { type Installation, installation } from '../support/installation.ts'
import { run } from '../support/processes.ts'

/** `npm run apply -- FILE.yaml`, as a process, against a server that listens. */

const folder = freshFolder()
let on: Installation
let address: string
beforeAll(async () => {
  on = await installation()
  address = await on.app.listen({ port: 0, host: '127.0.0.1' })
})

async function apply(args: string[], env: Record<string, string> = {}): Promise<{ code: number | null; said: string }> {
  const running = run('src/cli/apply.ts', { args, env: { GATEWRIGHT_URL: address, DATA_DIR: folder, ...env } })
  const { code } = await running.exited
  return { code, said: running.output() }
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const token = { GATEWRIGHT_TOKEN: adminToken }
const group = (name: string, attrs = '') =>
  `version: 1\nmetadata: { name: ${name} }\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} }${attrs} }\n`

test('says what was applied, and the second time that nothing changed', async () => {
  const path = file('group.yaml', group('from the shell'))
  const first = await apply([path], token)
  expect(first.said).toMatch(/^group "from the shell" created \(pk [\da-f-]{36}\)\napplied\n$/)
  expect(first.code).toBe(0)
  expect(await apply([path], token)).toEqual({ code: 0, said: 'group "from the shell" unchanged\napplied\n' })
})

test('takes the token that the first start left in DATA_DIR', async () => {
  writeFileSync(join(folder, 'admin-token'), `${token.GATEWRIGHT_TOKEN}\n`, { mode: 0o600 })
  const answer = await apply([file('kept.yaml', group('kept token'))])
  rmSync(join(folder, 'admin-token'))
  expect(answer).toMatchObject({ code: 0, said: expect.stringContaining('applied') })
})

test('names each fault by entry and member', async () => {
  const path = file('faults.yaml', group('faulty', ', attrs: { parnt: 1, is_superuser: 7 }'))
  expect(await apply([path], token)).toEqual({
    code: 1,
    said: 'entries.0.parnt: Unknown member. Did you mean parent?\nentries.0.is_superuser: Must be true or false.\nnot applied (400)\n',
  })
})

test('says what is missing: a file, a token, a server, a right', async () => {
  const path = file('fine.yaml', group('fine'))
  const nobody = await freePort()
  const someone = await on.make.user()
  for (const [args, env, said] of [
    [[], token, /^Say which file:/],
    [[path, 'another'], token, /^Say which file:/],
    [[join(folder, 'none.yaml')], token, /cannot be read \(ENOENT\)/],
    [[path], {}, /^No access token: set GATEWRIGHT_TOKEN/],
    [[path], { ...token, GATEWRIGHT_URL: `http://127.0.0.1:${nobody}` }, /does not answer \(ECONNREFUSED\)/],
    [[path], { ...token, GATEWRIGHT_URL: 'nowhere' }, /GATEWRIGHT_URL is "nowhere"/],
    [[path], { GATEWRIGHT_TOKEN: someone.token }, /^Only a superuser may do this\.\nnot applied \(403\)/],
    [[path], { GATEWRIGHT_TOKEN: 'wrong' }, /not applied \(401\)/],
  ] as const) {
    const answer = await apply([...args], env)
    expect(answer.said).toMatch(said)
    expect(answer.code).toBe(1)
    expect(answer.said).not.toMatch(/^\s+at /m)
  }
})

test('--help says how', async () => {
  expect(await apply(['--help'])).toMatchObject({
    code: 0,
    said: expect.stringContaining('npm run apply -- FILE.yaml'),
  })
})
