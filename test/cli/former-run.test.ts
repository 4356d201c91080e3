import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, exited, freshFolder, listening, named } from '../support/kit.ts'

/** `gatewright rollback`, as a process, against a server that listens. */

const folder = freshFolder()
const { gatewright, on } = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

const idIn = (output: string) => /"run": "\S+runs\/([-0-9a-f]{36})\/"/.exec(output)?.[1] ?? ''
const groupOf = async (slug: string) => (await on.db.application.findUniqueOrThrow({ where: { slug } })).group

test('rollback --to shows what would change, and applies it with --yes; the owner is that of the former run', async () => {
  const path = file('run.json', await named('oauth2', 'cli-run', { app: { group: 'First' } }))
  const first = await gatewright(['apply', path, '--json', '--owner', 'team-a'])
  const id = idIn(first.output)
  const second = file('run.json', await named('oauth2', 'cli-run', { app: { group: 'Second' } }))
  await gatewright(['apply', second, '--owner', 'team-a'])
  const rollback = (...args: string[]) => gatewright(['rollback', '--to', id, ...args], { GATEWRIGHT_OWNER: 'team-b' })
  const change = /\n~ service_core\.application "cli-run"\n {2}- group: "Second"\n/
  const planned = await exited(2, rollback('--plan'), change)
  await exited(2, rollback(), `${planned.output}Nothing is applied without --yes.\n`)
  expect(JSON.parse((await exited(2, rollback('--plan', '--json'))).output)).toMatchObject({ totals: { change: 1 } })
  expect(await groupOf('cli-run')).toBe('Second')
  await exited(0, rollback('--yes'), /^applied +run /m)
  expect(await groupOf('cli-run')).toBe('First')
  await exited(0, rollback('--yes'), '0 to add, 0 to change, 0 to delete\n')
})

test('prints what it does not put back, also when nothing is to be changed', async () => {
  const sent = async (client_secret?: string) =>
    file('left.json', await named('oauth2', 'cli-left', { provider: { client_secret } }))
  const id = idIn((await gatewright(['apply', await sent(), '--json'])).output)
  await gatewright(['apply', await sent('another secret of the client')])
  const left = 'provider oauth2 "cli-left": client_secret'
  await exited(0, gatewright(['rollback', '--to', id]), `not put back: ${left}\n`)
  const { output } = await gatewright(['rollback', '--to', id, '--plan', '--json'])
  expect(JSON.parse(output)).toMatchObject({ results: [{ not_put_back: [left] }] })
})

const absent = '01a1fd66-cb34-7782-913d-bbffaaf714c9'

test.each([
  ['files', ['a.json'], 'rollback takes no names: --to RUN goes back to this run.'],
  ['no id', ['--to', 'grafana'], '"grafana" is no id of a run: gatewright runs lists them.'],
  ['a run that is not there', ['--to', absent], 'There is no such run.'],
  ['both ways', ['--to', absent, '--plan', '--yes'], 'Use either --plan or --yes.'],
  ['no stack', [], 'Name the stack: --stack NAME, or stack in gatewright.yaml.'],
  ['an unknown stack', ['--stack', 'cli-none'], 'no such stack'],
])('%s: 1', async (_, args, message) => {
  await exited(1, gatewright(['rollback', ...args]), message)
})
