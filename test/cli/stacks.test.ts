import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, aGroup, aRole, exited, freshFolder, listening } from '../support/kit.ts'

/** `gatewright stack`, and what `rollback`, `runs` and `token` do with a stack. */

const there = await listening({ GATEWRIGHT_TOKEN: adminToken })
const { gatewright } = there
const folder = freshFolder()
mkdirSync(join(folder, 'teams/a'), { recursive: true })
const path = join(folder, 'teams/a/all.yaml')
const write = (...entries: object[]) => writeFileSync(path, JSON.stringify({ version: 1, entries }))
const [one, two] = [aGroup('cli-stack-one'), aGroup('cli-stack-two')]
const of = ['--stack', 'cli/stack']

test('an unknown stack, and one without a run before: 1', async () => {
  await exited(1, gatewright(['stack', 'show', 'cli/none']), 'no such stack')
  write(one)
  await exited(0, gatewright(['apply', path, ...of]))
  await exited(
    1,
    gatewright(['rollback', ...of]),
    'Stack cli/stack has no run before the last one: --to RUN names another.',
  )
})

test('list and show have the objects, and what is left over', async () => {
  write(one, two, aRole('cli-stack-one'))
  await exited(0, gatewright(['apply', path, ...of]))
  write(one, aRole('cli-stack-one'))
  await exited(0, gatewright(['apply', path, ...of]), 'group "cli-stack-two" is left over')
  await exited(0, gatewright(['stack']), /^cli\/stack: 3 objects, 1 left over$/m)
  const shown = await exited(
    0,
    gatewright(['stack', 'show', 'cli/stack']),
    /^ {2}service_core\.group "cli-stack-one"$/m,
  )
  expect(shown.output).toMatch(/^ {2}service_core\.group "cli-stack-two" left over since 20\S+$/m)
  const stack = JSON.parse((await gatewright(['stack', 'show', ...of, '--json'])).output)
  expect(stack).toMatchObject({ name: 'cli/stack', size: 3, left_over: 1 })
  expect(shown.output).toContain(`\n  last run    ${stack.run}\n  run before  ${stack.run_before}\n`)
})

test('show takes the stack of gatewright.yaml, which another --stack contradicts', async () => {
  writeFileSync(join(folder, 'gatewright.yaml'), 'stack: cli/stack\n')
  await exited(0, gatewright(['apply', folder]), '0 added')
  await exited(1, gatewright(['apply', folder, '--stack', 'cli/other']), 'leave one out')
  await exited(1, gatewright(['apply', folder, '--each']), '--each is not for a stack')
  expect((await gatewright(['runs', ...of, '--limit', '1'])).output).toMatch(/ applied +apply cli\/stack \(/)
})

test('a part of the folder changes its objects, and leaves nothing over', async () => {
  const other = join(folder, 'teams/a/other.yaml')
  writeFileSync(other, JSON.stringify({ version: 1, entries: [aGroup('cli-stack-other')] }))
  await exited(0, gatewright(['apply', folder]), '1 added')
  const before = JSON.parse((await gatewright(['stack', 'show', ...of, '--json'])).output)
  const planned = await exited(0, gatewright(['plan', other]), /A part of stack cli\/stack/)
  expect(planned.output).not.toContain('left over\n')
  await exited(0, gatewright(['apply', other]), 'unchanged')
  expect(JSON.parse((await gatewright(['stack', 'show', ...of, '--json'])).output)).toEqual(before)
  const [planId] = JSON.parse((await gatewright(['runs', '--mode', 'plan', '--limit', '1', '--json'])).output)
  await exited(1, gatewright(['rollback', '--to', planId.id, '--yes']), 'was not applied')
  await exited(
    1,
    gatewright(['rollback', '--to', before.run, '--stack', 'cli/other', '--yes']),
    'is of stack cli/stack',
  )
  rmSync(other)
  await exited(0, gatewright(['stack', 'forget', 'group', 'cli-stack-other', ...of]))
})

test('forget lets one object stay, which its model and name say', async () => {
  await exited(
    1,
    gatewright(['stack', 'forget', 'group', 'none', ...of]),
    'There is no such stack, or it has no such object.',
  )
  await exited(1, gatewright(['stack', 'forget', 'group', ...of]), 'stack forget MODEL NAME')
  const forget = ['stack', 'forget', 'group', 'cli-stack-two', ...of]
  await exited(0, gatewright(forget), /^group "cli-stack-two" stays without stack cli\/stack\n$/)
  await exited(1, gatewright(forget), 'it has no such object')
  await exited(0, gatewright(['plan', folder]), '2 unchanged in 1 file')
  expect(await there.on.db.group.count({ where: { name: 'cli-stack-two' } })).toBe(1)
})

test('a token that is bound to a stack applies it, and nothing else', async () => {
  const made = await exited(0, gatewright(['token', 'create', 'cli-stack', ...of]))
  const token = { GATEWRIGHT_TOKEN: made.output.split('\n')[0] ?? '' }
  await exited(0, gatewright(['token', 'list']), /^cli-stack {2}api {2}.* {2}bound to stack cli\/stack$/m)
  write(one, aRole('cli-stack-one'), aGroup('cli-stack-three'))
  await exited(0, gatewright(['apply', folder], token), '1 added')
  writeFileSync(join(folder, 'gatewright.yaml'), 'stack: cli/other\n')
  await exited(1, gatewright(['apply', folder], token), 'the token is bound to it')
})
