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

async function apply(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: number | null; output: string }> {
  const running = run('src/cli/apply.ts', { args, env: { GATEWRIGHT_URL: address, DATA_DIR: folder, ...env } })
  const { code } = await running.exited
  return { code, output: running.output() }
}

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const token = { GATEWRIGHT_TOKEN: adminToken }
const group = (name: string, attrs = '') =>
  `version: 1\nmetadata: { name: ${name} }\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} }${attrs} }\n`

test('prints what was applied, and the second time that nothing changed', async () => {
  const path = file('group.yaml', group('from the shell'))
  const first = await apply([path], token)
  expect(first.output).toMatch(/^group "from the shell" created \(pk [\da-f-]{36}\)\napplied\n$/)
  expect(first.code).toBe(0)
  expect(await apply([path], token)).toEqual({ code: 0, output: 'group "from the shell" unchanged\napplied\n' })
})

test('uses the token that the first start wrote to DATA_DIR', async () => {
  writeFileSync(join(folder, 'admin-token'), `${token.GATEWRIGHT_TOKEN}\n`, { mode: 0o600 })
  const answer = await apply([file('kept.yaml', group('kept token'))])
  rmSync(join(folder, 'admin-token'))
  expect(answer).toMatchObject({ code: 0, output: expect.stringContaining('applied') })
})

test('reports each error by entry and field', async () => {
  const path = file('errors.yaml', group('faulty', ', attrs: { parnt: 1, is_superuser: 7 }'))
  expect(await apply([path], token)).toEqual({
    code: 1,
    output:
      'entries.0.parnt: Unknown field. Did you mean parent?\nentries.0.is_superuser: Must be true or false.\nnot applied (400)\n',
  })
})

test('reports what is missing: a file, a token, a server, a permission', async () => {
  const path = file('fine.yaml', group('fine'))
  const unused = await freePort()
  const user = await on.make.user()
  for (const [args, env, output] of [
    [[], token, /^Name one file:/],
    [[path, 'another'], token, /^Name one file:/],
    [[path, '--allow-everything'], token, /^Unknown option '--allow-everything'/],
    [[path, '--owner'], token, /^Option '--owner <value>' argument missing/],
    [[path, '--owner', ''], token, /^--owner: Must have 1 to 100 characters\.$/m],
    [[join(folder, 'none.yaml')], token, /cannot be read \(ENOENT\)/],
    [[path], {}, /^No access token: set GATEWRIGHT_TOKEN/],
    [[path], { ...token, GATEWRIGHT_URL: `http://127.0.0.1:${unused}` }, /does not answer \(ECONNREFUSED\)/],
    [[path], { ...token, GATEWRIGHT_URL: 'http://gatewright.example' }, /unencrypted: use https/],
    [[path], { ...token, GATEWRIGHT_URL: 'http://127.0.0.1.example' }, /unencrypted: use https/],
    [[path], { GATEWRIGHT_URL: 'https://gatewright.example' }, /set GATEWRIGHT_TOKEN. The one in DATA_DIR/],
    [[path], { ...token, GATEWRIGHT_URL: 'nowhere' }, /GATEWRIGHT_URL is "nowhere"/],
    [[path], { GATEWRIGHT_TOKEN: user.token }, /^Only a superuser may do this\.\nnot applied \(403\)/],
    [[path], { GATEWRIGHT_TOKEN: 'wrong' }, /not applied \(401\)/],
  ] as const) {
    const answer = await apply([...args], env)
    expect(answer.output).toMatch(output)
    expect(answer.code).toBe(1)
    expect(answer.output).not.toMatch(/^\s+at /m)
  }
})

test('--owner, --allow-takeover and --allow-grants are sent', async () => {
  const application = (attrs = '') =>
    `version: 1\nmetadata: { name: owned }\nentries:\n  - { model: service_core.application, identifiers: { slug: owned }, attrs: { name: Owned${attrs} } }\n`
  const path = file('owned.yaml', application())
  expect(await apply([path, '--owner', 'équipe a'], token)).toMatchObject({ code: 0 })
  const owner = () => on.db.application.findUniqueOrThrow({ where: { slug: 'owned' } }).then((row) => row.owner)
  expect(await owner()).toBe('équipe a')
  expect(await apply(['--owner=team-b', path], token)).toEqual({
    code: 1,
    output: expect.stringMatching(/belongs to owner "équipe a".*\nnot applied \(409\)\n$/),
  })
  expect(await apply([path, '--owner', 'team-b', '--allow-takeover'], token)).toMatchObject({ code: 0 })
  expect(await owner()).toBe('team-b')

  const { username, group: own } = await on.make.user()
  const { name } = await on.db.group.findUniqueOrThrow({ where: { pk: own } })
  const granting = file('granting.yaml', group(JSON.stringify(name), ', attrs: { is_superuser: true }'))
  expect(await apply([granting, '--allow-takeover'], token)).toEqual({
    code: 1,
    output: expect.stringMatching(new RegExp(`: ${username}\\. .*\\nnot applied \\(409\\)\\n$`)),
  })
  expect(await apply(['--allow-grants', granting], token)).toMatchObject({ code: 0 })
})

test('--help prints the usage', async () => {
  expect(await apply(['--help'])).toMatchObject({
    code: 0,
    output: expect.stringContaining('npm run apply -- FILE.yaml'),
  })
})
