import { expect, test } from 'vitest'
import { run } from '../support/processes.ts'

async function migration(name: string) {
  const command = run('tools/migration/main.ts', { args: [name] })
  const { code } = await command.exited
  return { code, output: command.output() }
}

test('the migrations match prisma/schema.prisma, so there is nothing to write', async () => {
  expect(await migration('add_something')).toEqual({
    code: 0,
    output: 'The migrations match prisma/schema.prisma already.\n',
  })
})

test.each(['', 'AddSomething', 'add-something', '../x'])('the name %j is refused in a sentence', async (name) => {
  expect(await migration(name)).toEqual({
    code: 1,
    output: 'Name the migration after what it does, in snake_case: npm run migration -- add_something\n',
  })
})
