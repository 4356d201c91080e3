import { describe, expect, test } from 'vitest'
import { locate } from '../../src/cli/places.ts'
import { adminToken, freshFolder, installation, named, run, writerTo } from '../support/kit.ts'

/** Where `gatewright` says that an error is: in the caller's own file. */

const folder = freshFolder()
const file = writerTo(folder)
const on = await installation({ workers: 'none' })
const address = await on.app.listen({ port: 0, host: '127.0.0.1' })

async function gatewright(...args: string[]): Promise<string> {
  const env = { GATEWRIGHT_URL: address, GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder, FLAG: 'maybe' }
  const running = run('bin/gatewright.mjs', { args, env })
  expect((await running.exited).code).toBe(1)
  return running.output().replaceAll(`${folder}/`, '')
}

const wrong = `# A comment, which is not sent when the file is printed anew.
version: 1
metadata: {name: places}
entries:
  - model: service_core.group
    id: one
    identifiers: {name: one}
    attrs:
      is_superuser: FLAG
`
const flag = 'entries.0.is_superuser: Must be true or false.'
const nam = 'entries.0.nam: Unknown field. Did you mean name?'

describe.each(['validate', 'plan', 'apply'])('%s', (command) => {
  const status = command === 'validate' ? '' : ' (400)'

  test('each error with its line', async () => {
    const path = file('plain.yaml', wrong.replace('FLAG', 'maybe\n      nam: hunter2'))
    expect(await gatewright(command, path)).toBe(
      [
        `refused     plain.yaml${status}`,
        `            plain.yaml:9:7 ${flag}`,
        '                9 |       is_superuser: maybe',
        `            plain.yaml:10:7 ${nam}`,
        '               10 |       nam: ********',
        '',
      ].join('\n'),
    )
  })

  test('of the file as it is, where its tags are replaced', async () => {
    const path = file('tags.yaml', wrong.replace('FLAG', '!Env FLAG'))
    expect(await gatewright(command, path)).toContain(
      `            tags.yaml:9:7 ${flag}\n                9 |       is_superuser: !Env FLAG\n`,
    )
  })

  test('none inside of an !If', async () => {
    const path = file('if.yaml', wrong.replace(/attrs:.*/s, 'attrs: !If [true, {is_superuser: maybe}, {}]\n'))
    expect(await gatewright(command, path)).toBe(`refused     if.yaml${status}\n            ${flag}\n`)
  })

  test('of a submission in JSON', async () => {
    const body = await named('oauth2', 'places', { provider: { client_type: 7 } })
    const path = file('submission.json', JSON.stringify(body, null, 2))
    expect(await gatewright(command, path)).toMatch(
      /^ +submission\.json:\d+:5 provider\.client_type: Must be one of: .*\n +\d+ \| +"client_type": 7/m,
    )
  })

  test('--json has the same, with codes and pointers', async () => {
    const path = file('json.yaml', wrong.replace('FLAG', 'maybe'))
    const { results } = JSON.parse(await gatewright(command, path, '--json'))
    expect(results).toMatchObject([
      {
        errors: [`json.yaml:9:7 ${flag}`],
        details: [
          {
            ...{ code: 'wrong_type', pointer: '/entries/0/attrs/is_superuser', entry: 'one', line: 9, column: 7 },
            ...{ source: '      is_superuser: maybe' },
          },
        ],
      },
    ])
  })

  test('of text that is not YAML', async () => {
    const path = file('broken.yaml', 'version: 1\nmetadata: {\nentries: []\n')
    expect(await gatewright(command, path)).toContain('  broken.yaml:3:1 Line 3 cannot be read as YAML: deficient ind')
  })
})

test('all errors of the form, and how many are not listed', async () => {
  const entries = '- {model: service_core.group, identifiers: {name: a}, attrs: {is_superuser: x}}\n'.repeat(120)
  const output = await gatewright('plan', file('many.yaml', `version: 2\nentries:\n${entries}`))
  expect(output).toContain('many.yaml:1:1 version: ')
  expect(output).toContain('many.yaml:101:63 entries.98.is_superuser: ')
  expect(output).toMatch(/ {2}21 more errors are not listed\.\n$/)
})

test('the errors of a 409 are located, and its advice stays', async () => {
  const text = 'version: 1\nentries:\n  - model: service_core.group\n    identifiers: {name: one}\n'
  const value = { version: 1, entries: [{ model: 'service_core.group', identifiers: { name: 'one' } }] }
  const message = 'group "one" belongs to stack "other".'
  const found = await locate([{ document: { file: 'a.yaml', form: 'blueprint', text, value }, from: 0 }], {
    errors: [`${message} --allow-takeover applies it all the same.`],
    details: [{ code: 'invalid_value', message, pointer: '/entries/0' }],
  })
  expect(found.errors).toEqual([`a.yaml:3:5 entries.0: ${message}`, '--allow-takeover applies it all the same.'])
})
