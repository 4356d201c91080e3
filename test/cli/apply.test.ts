import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, exited, freshFolder, type Listening, listening, writerTo } from '../support/kit.ts'

/** `npm run apply -- FILE.yaml`, as a process, against a server that listens. */

const folder = freshFolder()
const file = writerTo(folder)
const there = await listening({ DATA_DIR: folder }, 'src/cli/gatewright.ts')
const { on } = there

const apply: Listening['gatewright'] = (args, env) => there.gatewright(['apply', ...args], env)

const token = { GATEWRIGHT_TOKEN: adminToken }
const group = (name: string, attrs = '') =>
  `version: 1\nmetadata: { name: ${name} }\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} }${attrs} }\n`

test('applies a file, and the second time changes nothing: gatewright apply', async () => {
  const path = file('group.yaml', group('from the shell'))
  const first = await apply([path], token)
  expect(first.output).toMatch(
    /^1 added, 0 changed, 0 deleted, 0 unchanged\napplied +\S+group\.yaml\n +group "from the shell" created \(pk [\da-f-]{36}\)\n$/,
  )
  expect(first.code).toBe(0)
  await exited(0, apply([path], token), /^0 added, 0 changed, 0 deleted, 1 unchanged\nunchanged +\S+group\.yaml\n$/)
})

test('uses the token that the first start wrote to DATA_DIR, on this machine only', async () => {
  const path = file('kept.yaml', group('kept token'))
  writeFileSync(join(folder, 'admin-token'), `${token.GATEWRIGHT_TOKEN}\n`, { mode: 0o600 })
  const answer = await apply([path])
  const elsewhere = await apply([path], { GATEWRIGHT_URL: 'https://gatewright.example' })
  rmSync(join(folder, 'admin-token'))
  expect(answer).toMatchObject({ code: 0, output: expect.stringContaining('applied') })
  expect(elsewhere).toEqual({ code: 1, output: expect.stringMatching(/The one in DATA_DIR is for this machine only/) })
  expect(await apply([path])).toEqual({ code: 1, output: expect.stringMatching(/^No access token/) })
})

test('what is refused is a 1', async () => {
  const path = file('errors.yaml', group('faulty', ', attrs: { parnt: 1, is_superuser: 7 }'))
  expect((await exited(1, apply([path], token))).output).toMatch(
    /\(400\)\n +\S+:4:74 entries\.0\.parnt: Unknown field\. Did you mean parent\?\n/,
  )
})

test('--message is kept with the run', async () => {
  const path = file('message.yaml', group('message-group'))
  expect(await apply([path, '--message', 'für das Team, CHG-1042'], token)).toMatchObject({ code: 0 })
  const { options } = await on.db.run.findFirstOrThrow({ orderBy: { createdAt: 'desc' } })
  expect(options).toMatchObject({ message: 'für das Team, CHG-1042' })
  await exited(1, apply([path, '--message', 'x'.repeat(301)], token), '--message: Must be at most 300 characters.')
})

test('--owner, --allow-takeover and --allow-grants are sent', async () => {
  const application = (attrs = '') =>
    `version: 1\nmetadata: { name: owned }\nentries:\n  - { model: service_core.application, identifiers: { slug: owned }, attrs: { name: Owned${attrs} } }\n`
  const path = file('owned.yaml', application())
  expect(await apply([path, '--owner', 'équipe a'], token)).toMatchObject({ code: 0 })
  const owner = () => on.db.application.findUniqueOrThrow({ where: { slug: 'owned' } }).then((row) => row.owner)
  expect(await owner()).toBe('équipe a')
  await exited(1, apply(['--owner=team-b', path], token), /^refused .* \(409\)\n.*belongs to owner "équipe a"/)
  expect(await apply([path, '--owner', 'team-b', '--allow-takeover'], token)).toMatchObject({ code: 0 })
  expect(await owner()).toBe('team-b')

  const { username, group: own } = await on.make.user()
  const { name } = await on.db.group.findUniqueOrThrow({ where: { pk: own } })
  const granting = file('granting.yaml', group(JSON.stringify(name), ', attrs: { is_superuser: true }'))
  expect((await exited(1, apply([granting, '--allow-takeover'], token))).output).toMatch(
    new RegExp(`\\(409\\)\\n.* would gain rights: ${username} \\(superuser\\)\\. `),
  )
  expect(await apply(['--allow-grants', granting], token)).toMatchObject({ code: 0 })
})

test('--allow-deletes acknowledges what a document with prune has left over', async () => {
  const document = (...slugs: string[]) => `version: 1
metadata: { name: pruned }
owner: team-pruned
prune: true
entries:
${slugs.map((slug) => `  - { model: service_core.application, identifiers: { slug: ${slug} }, attrs: { name: ${slug} } }\n`).join('')}`
  expect(await apply([file('both.yaml', document('kept', 'surplus'))], token)).toMatchObject({ code: 0 })
  const path = file('one.yaml', document('kept'))
  expect(await apply([path], token)).toMatchObject({ code: 0 })
  expect(await on.db.application.count({ where: { slug: { in: ['kept', 'surplus'] } } })).toBe(2)
  await exited(1, apply([path, '--allow-deletes', '2'], token), /\(409\)\n.*surplus.*--allow-deletes 1 deletes/)
  expect(await apply([path, '--allow-deletes', '0'], token)).toMatchObject({ code: 1 })
  expect(await apply([path, '--allow-deletes', '1'], token)).toMatchObject({ code: 0 })
  expect(await on.db.application.count({ where: { slug: { in: ['kept', 'surplus'] } } })).toBe(1)
})

test('--help prints the usage', async () => {
  await exited(0, apply(['--help']), 'gatewright apply [FILE...]')
  await exited(0, there.gatewright(['help', 'diff']), /^gatewright plan \[FILE\.\.\.\]/)
})

test('a 412 has the file and line of each entry that changed after the plan', async () => {
  const texts = ['one', 'two'].map((name) => group(`after-${name}`, ', attrs: { is_superuser: false }'))
  const paths = texts.map((text, index) => file(`after-${index}.yaml`, text))
  const plans = join(folder, 'after.json')
  await exited(2, there.gatewright(['plan', ...paths, '--out', plans], token))
  expect(await apply([paths[1] ?? ''], token)).toMatchObject({ code: 0 })
  const { output } = await exited(1, apply([...paths, '--plan-file', plans], token))
  expect(output.replaceAll(`${folder}/`, '')).toMatch(
    /^refused +after-0\.yaml and 1 more file \(412\)\n +after-1\.yaml:4:5 group "after-two" changed after the plan: .*run \S+ of \S+, [\dT:.-]+Z\.\n +4 \| .*\n +Plan again, and review that plan\.\n$/m,
  )
})
