import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { atEnd } from '../support/at-end.ts'
import { exited, type Listening, listening } from '../support/gatewright.ts'
import { adminToken, freePort, freshFolder, type Installation, named, until } from '../support/kit.ts'

/** `gatewright runs`, `logs` and `token`. */

const folder = freshFolder()
let on: Installation
let there: Listening
beforeAll(async () => {
  there = await listening({ GATEWRIGHT_TOKEN: adminToken })
  on = there.on
})

const gatewright: Listening['gatewright'] = (args, env) => there.gatewright(args, env)

function group(name: string): string {
  const path = join(folder, `${name}.yaml`)
  writeFileSync(
    path,
    `version: 1\nmetadata: { name: ${name} }\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} } }\n`,
  )
  return path
}

test('runs lists what was submitted, the newest first, and filters', async () => {
  await gatewright(['apply', group('listed')])
  await gatewright(['plan', group('planned')])
  const { code, output } = await gatewright(['runs', '--limit', '2'])
  expect(output).toMatch(
    /^[\da-f-]{36} {2}\S{19} {2}planned +plan blueprint planned \(.*\)\n[\da-f-]{36} {2}\S{19} {2}applied +apply blueprint listed \(.*\)\n$/,
  )
  expect(code).toBe(0)
  const plans = await gatewright(['runs', '--mode', 'plan', '--json'])
  expect(JSON.parse(plans.output)).toMatchObject([
    { title: 'plan blueprint planned', mode: 'plan', summary: 'planned: 1 created', log_lines: 1 },
  ])
  expect(await gatewright(['runs', '--mode', 'other'])).toMatchObject({ code: 1 })
  expect(await gatewright(['runs', '--limit', '0'])).toMatchObject({ code: 1 })
})

test.each([
  ['runs --state foo', /^--state: Must be one of: queued, done, failed, cancelled\.\n$/],
  ['runs --mode foo', /^--mode: Must be one of: apply, plan\.\n$/],
  ['runs --changed grafana', /^--changed: Must be a kind and a name, such as application:shop\./],
  [`runs --request-id ${'x'.repeat(256)}`, /^--request-id: Must be at most 255 characters\.\n$/],
  [`runs --stack ${'x'.repeat(256)}`, /^--stack: /],
  [`export --application ${'x'.repeat(256)}`, /^--application: /],
  ['token create a.b', /^IDENTIFIER: May hold only letters/],
  ['token create narrowed --user nobody', /^--user: No user is called "nobody"\./],
  ['token create narrowed --owner a,b --stack c,d', /^--owner: May have no comma.*\n--stack: May have no comma/],
  [`token create narrowed --message ${'x'.repeat(3_000)}`, /^--message: Must be at most/],
])('a value that the service refuses has the name of its option: %s', async (command, output) => {
  const answer = await gatewright(command.split(' '))
  expect(answer).toEqual({ code: 1, output: expect.stringMatching(output) })
})

test('runs narrows by owner, job and changed object', async () => {
  const job = { GATEWRIGHT_REQUEST_ID: 'https://ci.test/jobs/12' }
  const path = join(folder, 'app.json')
  writeFileSync(path, JSON.stringify(await named('oauth2', 'narrowed')))
  expect(await gatewright(['apply', path, '--owner', 'team-n'], job)).toMatchObject({ code: 0 })
  expect(await gatewright(['apply', group('not-narrowed')])).toMatchObject({ code: 0 })
  for (const filter of [
    ['--owner', 'team-n'],
    ['--request-id', job.GATEWRIGHT_REQUEST_ID],
    ['--changed', 'application:narrowed'],
  ])
    expect((await exited(0, gatewright(['runs', ...filter, '--timeout', '20']))).output).toMatch(
      /^\S+ {2}\S+ {2}applied +apply oauth2 narrowed \(.*\)\n$/,
    )
})

test('a job is its submitter and its request id together', async () => {
  const job = { GATEWRIGHT_REQUEST_ID: 'https://ci.test/jobs/13' }
  const stranger = await on.make.user({ permissions: ['add_group'] })
  expect(await gatewright(['apply', group('of-the-job')], job)).toMatchObject({ code: 0 })
  const posing = { ...job, GATEWRIGHT_TOKEN: stranger.token }
  expect(await gatewright(['apply', group('of-a-stranger')], posing)).toMatchObject({ code: 0 })
  const asked = ['runs', '--request-id', job.GATEWRIGHT_REQUEST_ID]
  const titles = async (args: string[], env = {}) =>
    [...(await gatewright(args, env)).output.matchAll(/blueprint (\S+)/g)].map(([, title]) => title)
  expect(await titles(asked)).toEqual(['of-the-job'])
  expect(await titles(asked, { GATEWRIGHT_TOKEN: stranger.token })).toEqual(['of-a-stranger'])
})

test('an apply that is interrupted takes no run of another user for its own', async () => {
  const job = { GATEWRIGHT_REQUEST_ID: 'https://ci.test/jobs/14' }
  const stranger = await on.make.user({ permissions: ['add_group'] })
  const release = on.hold()
  const running = there.start(['apply', group('own-interrupted')], job)
  const queued = (title: string) => ({ title: `apply blueprint ${title}`, state: 'queued' }) as const
  const untilQueued = (title: string) =>
    until(`${title} to be recorded`, async () => (await on.db.run.count({ where: queued(title) })) === 1)
  await untilQueued('own-interrupted')
  const other = there.start(['apply', group('other-interrupted')], { ...job, GATEWRIGHT_TOKEN: stranger.token })
  await untilQueued('other-interrupted')
  const { id } = await on.db.run.findFirstOrThrow({ where: queued('own-interrupted') })
  running.signal('SIGINT')
  await running.exited
  expect(running.output()).toContain(`Run ${id} is `)
  release()
  await other.exited
})

test('--version prints the version of the package', async () => {
  const output = `gatewright ${manifest.version}\n`
  expect(await gatewright(['--version'])).toEqual({ code: 0, output })
  expect(await gatewright(['version'])).toEqual({ code: 0, output })
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('an apply that gets %s names its run, which is applied all the same: %d', async (signal, code) => {
  const release = on.hold()
  const name = `interrupted-${code}`
  const running = there.start(['apply', group(name)])
  const queued = { title: `apply blueprint ${name}`, state: 'queued' } as const
  await until('the run to be recorded', async () => (await on.db.run.count({ where: queued })) === 1)
  const { id } = await on.db.run.findFirstOrThrow({ where: queued })
  running.signal(signal)
  expect(await running.exited).toEqual({ code, signal: null })
  expect(running.output()).toMatch(
    new RegExp(
      `\nInterrupted\\.\nRun ${id} is \\w+: it will be applied all the same\\.\ngatewright logs -f ${id} .*\n`,
    ),
  )
  release()
  await until('it to be applied', async () => (await on.db.group.count({ where: { name } })) === 1)
})

test('a plan that is interrupted leaves nothing behind to follow', async () => {
  const release = on.hold()
  const running = there.start(['plan', group('plan-interrupted')])
  await until(
    'the run to be recorded',
    async () => (await on.db.run.count({ where: { title: 'plan blueprint plan-interrupted' } })) === 1,
  )
  running.signal('SIGINT')
  expect(await running.exited).toEqual({ code: 130, signal: null })
  expect(running.output()).toMatch(/(^|\n)\nInterrupted\.\n$/)
  release()
})

test('logs -f waits for the end of a run; without -f it says that the outcome is not known: 3', async () => {
  const release = on.hold()
  const { output } = await gatewright(['apply', '--no-wait', group('followed')])
  const [id = ''] = /[\da-f-]{36}/.exec(output) ?? []
  await exited(3, gatewright(['logs', id]), /its outcome is not known yet\n$/)
  const following = there.start(['logs', '-f'])
  await following.line(/^waiting: run .* is (queued|running)/)
  release()
  expect(await following.exited).toMatchObject({ code: 0 })
  expect(following.output()).toMatch(new RegExp(`^group "followed" created .*\\n${id} .*: applied\\n$`, 'm'))
  expect(await gatewright(['logs', '00000000-0000-4000-8000-000000000000'])).toMatchObject({ code: 1 })
  expect(await gatewright(['logs', 'x'])).toMatchObject({ code: 1 })
})

test('an unreachable service is a 3', async () => {
  const away = { GATEWRIGHT_URL: `http://127.0.0.1:${await freePort()}` }
  expect(await gatewright(['logs', '-f', '--timeout', '1'], away)).toMatchObject({ code: 3 })
  await exited(3, gatewright(['token', 'create', 'never'], away), /ECONNREFUSED.*Nothing was created/)
})

test('what a service answered last is the reason, not that no time is left to ask again', async () => {
  const proxy = createServer((_, reply) => reply.writeHead(503).end()).listen(0, '127.0.0.1')
  atEnd(() => void proxy.close())
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  const env = { GATEWRIGHT_URL: `http://127.0.0.1:${port}` }
  const { output } = await exited(3, gatewright(['runs', '--timeout', '1'], env))
  expect(output).toMatch(/^The answer \(503\) is not one of Gatewright\.$/m)
  expect(output).not.toContain('no answer in time')
})

test('token create prints a key that works, token list has it, and token revoke ends it', async () => {
  const { code, output } = await gatewright(['token', 'create', 'from-cli', '--days', '2', '--json'])
  expect(code).toBe(0)
  const { key, expires } = JSON.parse(output)
  expect(await on.as(key).get('/api/v3/core/tokens/from-cli/')).toMatchObject({ status: 200 })
  expect(Date.parse(expires) - Date.now()).toBeGreaterThan(1.9 * 86_400_000)
  await exited(1, gatewright(['token', 'create', 'from-cli']), /^IDENTIFIER: "from-cli" is taken/)
  await exited(1, gatewright(['token', 'delete', 'from-cli']), /^It takes: gatewright token create/)
  await exited(0, gatewright(['token', 'list']), /^from-cli {2}api {2}\S+ {2}expires \S+$/m)
  expect(JSON.parse((await gatewright(['token', 'list', '--json'])).output)).toMatchObject(
    expect.arrayContaining([expect.objectContaining({ identifier: 'from-cli' })]),
  )
  await exited(0, gatewright(['token', 'revoke', 'from-cli']), 'from-cli is revoked.\n')
  expect(await on.as(key).get('/api/v3/core/tokens/')).toMatchObject({ status: 401 })
  await exited(1, gatewright(['token', 'revoke', 'from-cli']), 'There is no such token')
})

test('token create makes it for the user that --user names, by username or key', async () => {
  const { pk, username } = await on.make.user()
  for (const [identifier, user] of [
    ['by-username', username],
    ['by-key', String(pk)],
  ] as const) {
    expect(await gatewright(['token', 'create', identifier, '--user', user])).toMatchObject({ code: 0 })
    expect(await on.db.token.findUniqueOrThrow({ where: { identifier } })).toMatchObject({ userPk: pk })
  }
  for (const user of ['no-such-user', '', '0'])
    expect(await gatewright(['token', 'create', 'never', '--user', user])).toMatchObject({ code: 1 })
  expect(await on.db.token.count({ where: { identifier: 'never' } })).toBe(0)
})

test('GATEWRIGHT_REQUEST_ID is in the run; one that is not valid is a 1', async () => {
  const path = group('by-job')
  const id = 'https://ci.test/jobs/4711'
  expect(await gatewright(['apply', path], { GATEWRIGHT_REQUEST_ID: id })).toMatchObject({ code: 0 })
  expect(await on.db.run.findFirstOrThrow({ where: { requestId: id } })).toMatchObject({ title: expect.any(String) })
  expect((await exited(1, gatewright(['apply', path], { GATEWRIGHT_REQUEST_ID: 'a b' }))).output).toContain(
    'GATEWRIGHT_REQUEST_ID is "a b": it takes at most 128 letters',
  )
})
