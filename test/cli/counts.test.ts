import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { exited, listening } from '../support/kit.ts'

/** How much there is to learn: the commands, options and variables of `gatewright`, as its help lists them. */

const there = await listening({})
const helpOf = async (...words: string[]) => (await exited(0, there.gatewright(['help', ...words]))).output

test('there are at most 12 commands, 36 options and 14 variables', async () => {
  const help = await helpOf()
  const commands = [...help.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name = '']) => name)
  const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
  const options = new Set<string>()
  for (const command of commands) {
    const usage = await helpOf(command)
    expect(page).toMatch(new RegExp(`^\\| .*\`${command}\\b.*\` \\| `, 'm'))
    expect(usage).toMatch(new RegExp(`^gatewright ${command}\\b`))
    for (const [, name = ''] of usage.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)) options.add(name)
  }
  const [, environment = ''] = /^Environment: ([\s\S]*?)\n\n/m.exec(help) ?? []
  const variables = new Set(environment.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g))
  const counts = { commands: commands.length, options: options.size, variables: variables.size }
  process.stdout.write(`${JSON.stringify(counts)}\n${[...options].sort().join(' ')}\n${[...variables].join(' ')}\n`)
  expect(counts).toSatisfy((of: typeof counts) => of.commands <= 12 && of.options <= 36 && of.variables <= 14)
})
