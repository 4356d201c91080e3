import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { readInputs } from '../../src/cli/inputs.ts'
import { adminToken, freshFolder, type Installation, installation, writerTo } from '../support/kit.ts'
import { compileCache, run } from '../support/processes.ts'

/** Files as the program reads them: tags of the caller, folders, standard input. */

const folder = freshFolder()
const file = writerTo(folder)

/** The value of a field of a submission, or the errors of the file but for what the submission lacks. */
async function nameFrom(
  text: string,
  context: Record<string, string> = {},
  filesFrom: string | null = null,
): Promise<unknown> {
  const { documents } = await readInputs([file('value.yaml', `app:\n  name: ${text}\n`)], {
    context: Object.entries(context).map((pair) => pair.join('=')),
    ...(filesFrom !== null && { 'files-from': filesFrom }),
  })
  const [document] = documents
  if (document === undefined || 'errors' in document)
    return document?.errors.filter((error) => !error.endsWith('This field is required.'))
  return JSON.parse(document.body).app.name
}

const where = `${join(folder, 'value.yaml')}:2:9 `

test('a number that would lose digits is refused at its line, in a file of JSON too', async () => {
  const expected = [`${where}Is a number that is not kept digit for digit: send it as text, in quotes.`]
  for (const text of ['1056712345678901234', '1e400', '.inf']) expect(await nameFrom(text)).toEqual(expected)
  const { documents } = await readInputs([file('value.json', '{"app": {\n  "name": 1056712345678901234}}')], {})
  expect(documents).toMatchObject([{ errors: [expect.stringMatching(/value\.json:2:11 Is a number/)] }])
  expect(await nameFrom('"1056712345678901234"')).toBe('1056712345678901234')
})

describe('a tag of the caller', () => {
  beforeAll(() => {
    file('secret.txt', 'from a file\r\n')
    file('dots.txt', 'a\n\n')
  })

  test.each([
    ['!Env [NO_SUCH_VARIABLE, b]', 'b'],
    ['!Env NO_SUCH_VARIABLE some words', 'some words'],
    ['!Env [NO_SUCH_VARIABLE, null]', null],
    ['!Env [NO_SUCH_VARIABLE, !Context colour]', 'blue'],
    ['!File secret.txt', 'from a file'],
    ['!File dots.txt', 'a\n'],
    ['!File [none.txt, [1, 2]]', [1, 2]],
    ['!Context colour', 'blue'],
    ['!Context [size, 7]', 7],
    ['!Format ["%s is %s, 100%%", !Context colour, 3]', 'blue is 3, 100%'],
    ['!Format plain', 'plain'],
    ['!If [true, a, b]', 'a'],
    ['!If [!Context colour, a, !Env NO_SUCH_VARIABLE]', 'a'],
    ['!If [!Context [size, "false"], !Env NO_SUCH_VARIABLE, b]', 'b'],
    ['!If [!Context [size, off], a, [!Context colour, { x: !Context colour }]]', ['blue', { x: 'blue' }]],
    ['"!Env NO_SUCH_VARIABLE"', '!Env NO_SUCH_VARIABLE'],
  ])('%s is %j', async (text, value) => {
    expect(await nameFrom(text, text.includes('colour') ? { colour: 'blue' } : {})).toEqual(value)
  })

  test.each([
    ['!Env NO_SUCH_VARIABLE', `${where}!Env: the variable NO_SUCH_VARIABLE is not set, or is empty`],
    ['!Env A-B', `${where}!Env: "A-B" is no name of a variable.`],
    ['!Env [A, b, c]', `${where}!Env: takes a name`],
    ['!File none.txt', `${where}!File: there is no file none.txt`],
    ['!File .', `${where}!File: `],
    ['!Context size', `${where}!Context: there is no --context size=VALUE, and no size in the context`],
    ['!Format ["%s"]', `${where}!Format: its value 1 is missing`],
    ['!Format ["%d", 1]', `${where}!Format: "%d" is unknown`],
    ['!Format ["x", 1]', `${where}!Format: has 1 values for 0 %s.`],
    ['!If [true, a]', `${where}!If: takes a condition, or a list of three`],
    ['[a, !If [true, !Context size, b]]', ':2:24 !Context: '],
    ['!Nothing x', 'unknown scalar tag'],
    ['!KeyOf x', 'A submission takes no !KeyOf or !Find'],
  ])('%s is an error with its place', async (text, error) => {
    expect(await nameFrom(text)).toEqual([expect.stringContaining(error)])
  })
})

describe('!File stays below the folder of its document', () => {
  const outer = freshFolder()
  const inner = (name: string) => join(folder, name)
  beforeAll(() => {
    writeFileSync(join(outer, 'key.txt'), 'of the machine')
    mkdirSync(inner('files'), { recursive: true })
    file('files/in.txt', 'below')
    mkdirSync(`${folder}-beside`)
    writeFileSync(join(`${folder}-beside`, 'x.txt'), 'beside')
    symlinkSync(join(outer, 'key.txt'), inner('link.txt'))
    symlinkSync(outer, inner('linked'))
    symlinkSync(inner('files'), inner('within'))
  })

  test('a path, a link and a folder that is linked do not lead out', async () => {
    const outside = [
      ...[join(outer, 'key.txt'), `../${basename(outer)}/key.txt`, 'link.txt', 'linked/key.txt', '/etc/passwd'],
      ...[`../${basename(folder)}-beside/x.txt`, '../not-there.txt', 'files/../../not-there.txt', '..'],
    ]
    for (const path of outside)
      for (const text of [`!File ${path}`, `!File [${path}, default]`])
        expect([text, await nameFrom(text)]).toEqual([
          text,
          [expect.stringMatching(/!File: \S+ is not below \S+: --files-from DIR lets it read below DIR/)],
        ])
    for (const path of ['files/in.txt', './files/../files/in.txt', inner('files/in.txt'), 'within/in.txt'])
      expect(await nameFrom(`!File ${path}`)).toBe('below')
  })

  test('--files-from lets it read below another folder too', async () => {
    for (const path of [join(outer, 'key.txt'), 'link.txt', 'linked/key.txt'])
      expect([path, await nameFrom(`!File ${path}`, {}, outer)]).toEqual([path, 'of the machine'])
    expect(await nameFrom('!File files/in.txt', {}, outer)).toBe('below')
    expect(await nameFrom('!File /etc/passwd', {}, outer)).toEqual([expect.stringContaining('is not below')])
    await expect(nameFrom('!File files/in.txt', {}, join(outer, 'not-there'))).rejects.toThrow('is no folder')
  })
})

test('of a folder all YAML and JSON files are read, sorted, with those of its folders', async () => {
  const top = join(folder, 'top')
  mkdirSync(join(top, 'b'), { recursive: true })
  mkdirSync(join(top, '.hidden'))
  for (const name of ['c.json', 'a.yaml', 'b/z.yml', 'notes.txt', '.hidden/x.yaml', '.y.yaml'])
    file(`top/${name}`, '{app: {}}')
  const { documents } = await readInputs([top], {})
  expect(documents.map((document) => document.file)).toEqual(
    ['a.yaml', 'b/z.yml', 'c.json'].map((name) => join(top, name)),
  )
})

describe('the program', () => {
  const program = fileURLToPath(new URL('../../bin/gatewright.mjs', import.meta.url))
  const validate = (input: string, env: Record<string, string> = {}) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'validate', '-'], {
      input,
      env: { ...compileCache, ...env },
      encoding: 'utf8',
      timeout: 60_000,
    })
    return { status, output: `${stdout}${stderr}` }
  }
  const group = (name: string, attrs = '{}') =>
    `version: 1\nmetadata: { name: x }\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} }, attrs: ${attrs} }\n`

  test('validates standard input, and names every error: 1', () => {
    expect(validate(group('x'))).toEqual({ status: 0, output: 'valid       standard input\n' })
    expect(validate(group('x', '{ parnt: 1, is_superuser: 7 }'))).toEqual({
      status: 1,
      output: expect.stringMatching(
        /^refused +standard input\n +standard input:4:69 entries\.0\.parnt: .*\n.*\n +standard input:4:79 entries\.0\.is_superuser: .*\n.*\n$/,
      ),
    })
    expect(validate('{"app": {}}')).toMatchObject({
      status: 1,
      output: expect.stringContaining('provider_model: This field is required.'),
    })
    expect(validate('a: 1')).toMatchObject({ status: 1, output: expect.stringContaining('Is neither a submission') })
  })

  test('refuses the name __proto__, with its place', () => {
    expect(validate(group('x', '{ attributes: { __proto__: 1 } }'))).toEqual({
      status: 1,
      output: expect.stringMatching(/standard input:4:83 holds a field with the name __proto__: no field may have/),
    })
    expect(validate('{"app": {"__proto__": 1}}')).toMatchObject({
      status: 1,
      output: expect.stringContaining(':1:10 '),
    })
  })

  test('checks values of tags, and prints none of a variable', () => {
    const answer = validate(
      group('!Format ["%s-x", !Env SECRET_NAME]', '{ parent: !Env SECRET_NAME, x: !Env [NO, 1] }'),
      {
        SECRET_NAME: 'hidden-value',
      },
    )
    expect(answer).toMatchObject({ status: 1, output: expect.stringContaining('entries.0.x: Unknown field.') })
    expect(answer.output).not.toContain('hidden-value')
  })

  test('hides a value in the forms in which it may be stored, and in the errors of a file that cannot be read', () => {
    const values = [
      '  padded-value \n',
      'Ju\u0308rgen-secret',
      '\ufb01ne-secret',
      'two  blanks here',
      'UPPER-Secret',
      'quo"ted-value',
    ]
    for (const value of values) {
      const normal = value.trim().normalize('NFKC').replace(/\s+/g, ' ')
      const leaves = [value.trim(), value.trim().normalize('NFC'), normal, normal.toLowerCase()]
      for (const attrs of [
        '{ parent: !Env SECRET_NAME }',
        '{ is_superuser: !Env SECRET_NAME }',
        '{ a: !AtIndex [[1], !Env SECRET_NAME] }',
      ]) {
        const { output } = validate(group('!Env SECRET_NAME', attrs), { SECRET_NAME: value })
        for (const each of leaves) {
          expect(output).not.toContain(each)
          expect(output).not.toContain(JSON.stringify(each).slice(1, -1))
        }
      }
    }
  })

  describe('with a service', () => {
    let on: Installation
    let url: string
    beforeAll(async () => {
      on = await installation()
      url = await on.app.listen({ port: 0, host: '127.0.0.1' })
    })

    test('sends values, not tags, and hides them in what the service answers', async () => {
      const path = file(
        'env.yaml',
        group('!Env GROUP_NAME', '{ parent: !Find [service_core.group, { name: !Context parent }] }'),
      )
      await on.db.group.create({ data: { pk: randomUUID(), name: 'the parent' } })
      const other = file('null.yaml', group('!Env NULL_NAME'))
      const applying = run('bin/gatewright.mjs', {
        args: ['apply', '--each', path, other, '--context', 'parent=the parent', '--json'],
        env: { GATEWRIGHT_URL: url, GATEWRIGHT_TOKEN: adminToken, GROUP_NAME: 'name from "ci"', NULL_NAME: 'null' },
      })
      expect(await applying.exited).toMatchObject({ code: 0 })
      expect(await on.db.group.count({ where: { name: 'name from "ci"' } })).toBe(1)
      expect(applying.output()).toContain('group \\"********\\" created')
      expect(applying.output()).not.toMatch(/from.{1,6}ci/)
      expect(JSON.parse(applying.output())).toMatchObject({
        exit: 0,
        results: [{}, { outcome: 'applied', status: null }],
      })
    })
  })
})

describe('all tags without a value are reported in one run', () => {
  test('with their places, and with the other errors of the file', async () => {
    const path = file(
      'many-tags.yaml',
      [
        'version: 1',
        'context: { x: !Env NO_CONTEXT }',
        'entries:',
        '- model: service_core.group',
        '  identifiers: { name: !Env NO_NAME }',
        '  attrs:',
        '    is_superuser: maybe',
        '    nam: !File none.txt',
        '    attributes: { a: !Format ["%s", !Context x], b: !Context x, c: !If [!Env NO_IF, !Env NO_BRANCH, 1] }',
        '    parent: !Context nothing',
        '- model: !Env NO_MODEL',
        '  identifiers: { name: !Enumerate [!Env NO_LIST, MAP, !Value 0] }',
        '- model: service_core.grup',
        '  identifiers: { name: x }',
        '',
      ].join('\n'),
    )
    const { documents } = await readInputs([path], {})
    const none = (what: string) => `!Env: the variable ${what} is not set, or is empty, and there is no default.`
    const errors = [
      `2:15 ${none('NO_CONTEXT')}`,
      `5:24 ${none('NO_NAME')}`,
      '7:5 entries.0.is_superuser: Must be true or false.',
      '8:5 entries.0.nam: Unknown field. Did you mean name?',
      '8:10 !File: there is no file none.txt, and there is no default.',
      `9:73 ${none('NO_IF')}`,
      '10:13 !Context: there is no --context nothing=VALUE, and no nothing in the context of the document, and no default.',
      `11:10 ${none('NO_MODEL')}`,
      `12:36 ${none('NO_LIST')}`,
      '13:3 entries.2.model: Unknown model. Did you mean service_core.group?',
    ]
    expect(documents).toMatchObject([{ errors: errors.map((error) => `${path}:${error}`) }])
    expect(documents).toMatchObject([{ details: errors.map((error) => ({ line: Number.parseInt(error, 10) })) }])
  })

  test('in a submission', async () => {
    const path = file(
      'tags-of-submission.yaml',
      'app: {name: !Env NO_NAME, slug: "!!"}\nprovider_model: service_providers_oauth2.oauth2provider\nprovider: {name: x, client_type: 7, client_secret: !Env NO_SECRET}\n',
    )
    const { documents } = await readInputs([path], {})
    expect(documents).toMatchObject([
      {
        errors: [
          expect.stringContaining(':1:13 !Env: the variable NO_NAME'),
          expect.stringContaining(':1:27 app.slug: '),
          expect.stringContaining(':3:21 provider.client_type: '),
          expect.stringContaining(':3:52 !Env: the variable NO_SECRET'),
        ],
      },
    ])
  })

  test('five hundred are listed, and the others counted', async () => {
    const entries = Array.from(
      { length: 611 },
      (_, index) => `- {model: service_core.group, identifiers: {name: !Env NO_${index}}}\n`,
    )
    const path = file('export.yaml', `version: 1\nentries:\n${entries.join('')}`)
    const { documents } = await readInputs([path], {})
    const { errors = [] } = documents[0] as { errors?: readonly string[] }
    expect(errors).toHaveLength(501)
    expect(errors[210]).toBe(
      `${path}:213:51 !Env: the variable NO_210 is not set, or is empty, and there is no default.`,
    )
    expect(errors.at(-1)).toBe('111 more errors are not listed.')
  })
})
