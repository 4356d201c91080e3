import { rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { migrationNames, migrationsFolder } from '../../src/db/migrations.ts'
import { timestampAfter } from '../../tools/migration/timestamp.ts'
import { atEnd, exited, run } from '../support/kit.ts'

const name = 'add_what_only_this_test_adds'

// When they differ, the test fails, and the migration that was written must not stay: other tests would apply it.
atEnd(async () => {
  for (const folder of await migrationNames())
    if (folder.endsWith(`_${name}`)) rmSync(new URL(`${folder}/`, migrationsFolder), { recursive: true })
})

async function migration(name: string) {
  const command = run('tools/migration/main.ts', { args: [name] })
  const { code } = await command.exited
  return { code, output: command.output() }
}

test('the migrations match prisma/schema.prisma, so there is nothing to write', async () => {
  expect((await exited(0, migration(name))).output).toBe('The migrations match prisma/schema.prisma already.\n')
})

test.each(['', 'AddSomething', 'add-something', '../x'])('the name %j is refused in a sentence', async (name) => {
  expect((await exited(1, migration(name))).output).toBe(
    'Name the migration after what it does, in snake_case: npm run migration -- add_something\n',
  )
})

test.each([
  ['20261129120100_last', '2026-12-01T10:20:30.456Z', '20261201102030'],
  ['20261129120100_last', '2026-11-26T10:20:30.456Z', '20261129120101'],
  ['20261231235959_last', '2026-11-26T10:20:30.456Z', '20270101000000'],
])('a new migration comes after %s when the clock says %s', (last, now, expected) => {
  expect(timestampAfter(last, new Date(now))).toBe(expected)
})

test('each migration has a time of its own, so that they have one order', async () => {
  const times = (await migrationNames()).map((each) => /^(\d{14})_[a-z0-9_]+$/.exec(each)?.[1])
  // Two migrations of 0.2.0 share this one.
  const shared = '20261124010000'
  expect(times.filter((each, at) => at > 0 && each === times[at - 1])).toEqual([shared])
  expect(times).not.toContain(undefined)
})
