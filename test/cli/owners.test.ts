import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, exited, freshFolder, installation, named, run } from '../support/kit.ts'

/** Two teams with one service each: by the commands, neither gets at what the other one manages. */

const folder = freshFolder()
const on = await installation()
const address = await on.app.listen({ port: 0, host: '127.0.0.1' })

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

test('token create --owner makes a token of that team alone', async () => {
  const [mine, other] = [`mine-${randomUUID().slice(0, 8)}`, `other-${randomUUID().slice(0, 8)}`]
  expect(await gatewright(['apply', await file(other), '--owner', 'team-two'], adminToken)).toMatchObject({ code: 0 })
  const identifier = `cli-${randomUUID()}`
  const made = await exited(
    0,
    gatewright(['token', 'create', identifier, '--owner', 'team-one', '--owner', 'team-three'], adminToken),
  )
  const [key = ''] = secrets(made.output)
  const { ceiling } = await on.db.token.findUniqueOrThrow({ where: { identifier } })
  expect(ceiling).toEqual(expect.arrayContaining(['add_application@team-one', 'add_application@team-three']))
  expect(ceiling).not.toContain('add_application')

  const before = await secretsOf(other)
  for (const args of [
    ['apply', await file(mine), '--owner', 'team-two'],
    ['apply', await file(other), '--owner', 'team-one', '--allow-takeover'],
  ])
    expect(await gatewright(args, key), args.join(' ')).toMatchObject({ code: 1 })
  expect(await secretsOf(other)).toEqual(before)
  for (const owner of ['team-one', 'team-three'])
    await exited(0, gatewright(['apply', await file(`${mine}-${owner}`), '--owner', owner], key))
  // It makes no token that is bound less.
  const less = ['token', 'create', `${identifier}-less`, '--owner', 'team-two']
  expect(await gatewright(less, key)).toMatchObject({ code: 1 })
})
