import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { adminToken } from '../support/engine.ts'
import { freshFolder } from '../support/folder.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import { run } from '../support/processes.ts'

/** Two teams with one service each: by the commands, neither gets at what the other one manages. */

const folder = freshFolder()
let on: Installation
let address: string
beforeAll(async () => {
  on = await installation()
  address = await on.app.listen({ port: 0, host: '127.0.0.1' })
})

const deploys = [
  ...['application', 'oauth2provider'].flatMap((each) =>
    ['view', 'add', 'change', 'delete'].map((action) => `${action}_${each}`),
  ),
  'view_flow',
]

async function gatewright(args: string[], token: string) {
  const env = { GATEWRIGHT_URL: address, GATEWRIGHT_TOKEN: token, DATA_DIR: folder }
  const running = run('bin/gatewright.mjs', { args, env })
  const { code } = await running.exited
  return { code, output: running.output() }
}

async function file(name: string): Promise<string> {
  const path = join(folder, `${name}.json`)
  writeFileSync(path, JSON.stringify(await named('oauth2', name)))
  return path
}

const secretsOf = async (name: string) => (await on.db.provider.findUniqueOrThrow({ where: { name } })).secrets
/** A line that could be a secret. */
const secrets = (output: string) => output.split('\n').filter((line) => /^\S{30,}$/.test(line))

test('rotate neither changes nor prints the secret of another team, whatever it says', async () => {
  const { token: one } = await on.make.user({ permissions: deploys, owners: ['team-one'] })
  const { token: two } = await on.make.user({ permissions: deploys, owners: ['team-two'] })
  const slug = `rotate-${randomUUID().slice(0, 8)}`
  expect(await gatewright(['apply', await file(slug), '--owner', 'team-one'], one)).toMatchObject({ code: 0 })
  const before = await secretsOf(slug)
  const missing = await gatewright(['rotate', `${slug}-not`, '--owner', 'team-two'], two)
  for (const options of [
    [],
    ['--owner', 'team-one'],
    ['--owner', 'team-two'],
    ['--owner', 'team-two', '--allow-takeover'],
    ['--owner', 'team-two', '--overlap', 'hours=1'],
  ]) {
    const { code, output } = await gatewright(['rotate', slug, ...options], two)
    expect([code, secrets(output)], output).toEqual([1, []])
    // As for an application that is not there.
    expect(output.replaceAll(slug, 'x')).toBe(missing.output.replaceAll(`${slug}-not`, 'x'))
  }
  expect(await secretsOf(slug)).toEqual(before)
  const own = await gatewright(['rotate', slug, '--owner', 'team-one'], one)
  expect([own.code, secrets(own.output).length]).toEqual([0, 1])
  expect(await secretsOf(slug)).not.toEqual(before)
})

test('rotate by who may view another team, but not write for it, prints no secret', async () => {
  const { token: one } = await on.make.user({ permissions: deploys, owners: ['team-one'] })
  const viewer = await on.make.user({
    permissions: deploys,
    owners: ['team-two'],
    groups: [(await on.make.group({ roles: [(await on.make.role(deploys.slice(0, 1))).pk] })).pk],
  })
  const slug = `viewed-${randomUUID().slice(0, 8)}`
  expect(await gatewright(['apply', await file(slug), '--owner', 'team-one'], one)).toMatchObject({ code: 0 })
  const reading = await on.make.user({ permissions: deploys.filter((each) => each.startsWith('view_')) })
  const before = await secretsOf(slug)
  for (const by of [viewer, reading])
    for (const owner of ['team-one', 'team-two']) {
      const { code, output } = await gatewright(['rotate', slug, '--owner', owner, '--allow-takeover'], by.token)
      expect([code, secrets(output)], output).toEqual([1, []])
    }
  expect(await secretsOf(slug)).toEqual(before)
})

test('token create --owner makes a token of that team alone', async () => {
  const [mine, other] = [`mine-${randomUUID().slice(0, 8)}`, `other-${randomUUID().slice(0, 8)}`]
  expect(await gatewright(['apply', await file(other), '--owner', 'team-two'], adminToken)).toMatchObject({ code: 0 })
  const identifier = `cli-${randomUUID()}`
  const made = await gatewright(
    ['token', 'create', identifier, '--owner', 'team-one', '--owner', 'team-three'],
    adminToken,
  )
  expect(made.code, made.output).toBe(0)
  const [key = ''] = secrets(made.output)
  const { ceiling } = await on.db.token.findUniqueOrThrow({ where: { identifier } })
  expect(ceiling).toEqual(expect.arrayContaining(['add_application@team-one', 'add_application@team-three']))
  expect(ceiling).not.toContain('add_application')

  const before = await secretsOf(other)
  for (const args of [
    ['apply', await file(mine), '--owner', 'team-two'],
    ['apply', await file(other), '--owner', 'team-one', '--allow-takeover'],
    ['rotate', other, '--owner', 'team-two'],
    ['rotate', other, '--owner', 'team-one', '--allow-takeover'],
  ])
    expect(await gatewright(args, key), args.join(' ')).toMatchObject({ code: 1 })
  expect(await secretsOf(other)).toEqual(before)
  for (const owner of ['team-one', 'team-three'])
    expect(await gatewright(['apply', await file(`${mine}-${owner}`), '--owner', owner], key)).toMatchObject({
      code: 0,
    })
  // It makes no token that is bound less.
  const less = ['token', 'create', `${identifier}-less`, '--owner', 'team-two']
  expect(await gatewright(less, key)).toMatchObject({ code: 1 })
})
