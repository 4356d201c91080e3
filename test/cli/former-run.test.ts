import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, exited, freshFolder, listening, named } from '../support/kit.ts'

/** `gatewright plan --run` and `apply --run`, as processes, against a server that listens. */

const folder = freshFolder()
const { gatewright, on } = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

const idIn = (output: string) => /"run": "\S+runs\/([-0-9a-f]{36})\/"/.exec(output)?.[1] ?? ''
const groupOf = async (slug: string) => (await on.db.application.findUniqueOrThrow({ where: { slug } })).group

test('applies the document of a former run, with its owner; a plan shows it', async () => {
  const path = file('run.json', await named('oauth2', 'cli-run', { app: { group: 'First' } }))
  const first = await gatewright(['apply', path, '--json', '--owner', 'team-a'])
  const id = idIn(first.output)
  const second = file('run.json', await named('oauth2', 'cli-run', { app: { group: 'Second' } }))
  await gatewright(['apply', second, '--owner', 'team-a'])
  const plans = ['--plan-file', join(folder, 'plans.json')]
  const planned = gatewright(['plan', '--run', id, '--out', plans[1] ?? ''], { GATEWRIGHT_OWNER: 'team-b' })
  await exited(2, planned, /\n~ service_core\.application "cli-run"\n {2}- group: "Second"\n/)
  expect(await groupOf('cli-run')).toBe('Second')
  const applied = await gatewright(['apply', '--run', id, ...plans], { GATEWRIGHT_OWNER: 'team-b' })
  expect(applied).toMatchObject({ code: 0, output: expect.stringMatching(/^applied +run /m) })
  expect(await groupOf('cli-run')).toBe('First')
  await exited(0, gatewright(['apply', '--run', id]), /^unchanged/m)
})

test('prints what it does not put back, also when nothing is to be changed', async () => {
  const sent = async (client_secret?: string) =>
    file('left.json', await named('oauth2', 'cli-left', { provider: { client_secret } }))
  const id = idIn((await gatewright(['apply', await sent(), '--json'])).output)
  await gatewright(['apply', await sent('another secret of the client')])
  const left = 'provider oauth2 "cli-left": client_secret'
  const summary = join(folder, 'left.md')
  await exited(0, gatewright(['plan', '--run', id, '--summary', summary]), `not put back: ${left}\n`)
  expect(readFileSync(summary, 'utf8')).toContain(`not put back: ${left}\n`)
  await exited(0, gatewright(['apply', '--run', id]), `not put back: ${left}\n`)
  const { output } = await gatewright(['plan', '--run', id, '--json'])
  expect(JSON.parse(output)).toMatchObject({ results: [{ not_put_back: [left] }] })
})

test.each([
  ['files beside it', ['--run', '01a1fd66-cb34-7782-913d-bbffaaf714c9', 'a.json'], 'Use either files or --run.'],
  ['no id', ['--run', 'grafana'], '--run takes the id of a run, as "gatewright runs" lists it.'],
  ['a run that is not there', ['--run', '01a1fd66-cb34-7782-913d-bbffaaf714c9'], 'There is no such run.'],
])('%s: 1', async (_, args, message) => {
  expect(await gatewright(['apply', ...args])).toMatchObject({ code: 1, output: expect.stringContaining(message) })
})
