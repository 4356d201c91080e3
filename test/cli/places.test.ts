import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { locate } from '../../src/cli/places.ts'
import { adminToken, freshFolder, installation, named, run, writerTo } from '../support/kit.ts'

/** Where `gatewright` says that an error is: in the caller's own file. */

const folder = freshFolder()
const file = writerTo(folder)
const on = await installation({ workers: 'none' })
const address = await on.app.listen({ port: 0, host: '127.0.0.1' })

const gatewright = (...args: string[]) => gatewrightAs(adminToken, ...args)

async function gatewrightAs(token: string, ...args: string[]): Promise<string> {
  const env = { GATEWRIGHT_URL: address, GATEWRIGHT_TOKEN: token, DATA_DIR: folder, FLAG: 'maybe' }
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
    details: [{ code: 'other_owner', message, pointer: '/entries/0' }],
  })
  expect(found.errors).toEqual([`a.yaml:3:5 ${message}`, '--allow-takeover applies it all the same.'])
})

test('what concerns the whole document has no place in it, such as a row that is left over', async () => {
  const message = 'group "one" left the files, and group "two" refers to it: change or delete that first.'
  const document = { file: 'a.yaml', form: 'blueprint', text: 'version: 1\nentries: []\n', value: {} } as const
  const found = await locate([{ document, from: 0 }], {
    errors: [message],
    details: [{ code: 'in_use', message, pointer: '' }],
  })
  expect(found).toMatchObject({ errors: [message], details: [{ code: 'in_use', message }] })
  expect(found.details[0]).not.toHaveProperty('line')
})

describe('a refusal of two files', () => {
  const text = (slug: string) =>
    `version: 1\nentries:\n  - model: service_core.application\n    identifiers: { slug: ${slug} }\n    attrs: { name: ${slug} }\n`

  test('a 409 has one line for each entry, and advises to send its owner', async () => {
    await on.db.application.create({ data: { pk: randomUUID(), slug: 'of-a', name: 'of-a', owner: 'team-a' } })
    const paths = [file('free.yaml', text('free')), file('of-a.yaml', text('of-a'))]
    expect(await gatewright('apply', ...paths)).toMatch(
      /^refused +free\.yaml and 1 more file \(409\)\n +of-a\.yaml:3:5 application "of-a" belongs to owner "team-a" .* Send it as owner "team-a": `owner: "team-a"` in the file, or --owner\. --allow-takeover takes it from that owner\.\n +3 \| .*\n$/,
    )
  })

  test('a 409 has the line of what another stack has', async () => {
    const pk = randomUUID()
    await on.db.application.create({ data: { pk, slug: 'of-s', name: 'of-s', owner: 'team-s' } })
    const members = { create: { model: 'service_core.application', key: pk, fields: [] } }
    await on.db.stack.create({ data: { name: 'one', members } })
    const paths = [file('other.yaml', text('other')), file('of-s.yaml', text('of-s'))]
    expect(await gatewright('apply', '--stack', 'two', '--owner', 'team-s', ...paths)).toMatch(
      /\(409\)\n +of-s\.yaml:3:5 application "of-s" belongs to stack "one", and the request is of stack "two"\. --allow-takeover applies it all the same\.\n +3 \| .*\n$/,
    )
  })

  test('a 403 has the line of its entry', async () => {
    const { token } = await on.make.user({ permissions: ['add_group', 'change_group'] })
    const group = 'version: 1\nentries: [{ model: service_core.group, identifiers: { name: g-two } }]\n'
    const paths = [file('group.yaml', group), file('not.yaml', text('not-mine'))]
    expect(await gatewrightAs(token, 'plan', ...paths)).toMatch(
      /\(403\)\n +not\.yaml:3:5 You may not write application "not-mine": the permission .* is missing\.\n +3 \| .*\n$/,
    )
  })
})
