import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { patternOf } from '../../src/cli/project.ts'
import { adminToken, atEnd, exited, folderOf, freshFolder, listening, named, run } from '../support/kit.ts'

/** `gatewright.yaml`: the stack, the owners and the environments of a folder. */

const program = 'src/cli/gatewright.ts'
const data = freshFolder()
const there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: data }, program)

/** Runs the program in a folder. */
async function within(cwd: string, args: string[], env: Record<string, string> = {}) {
  const all = { GATEWRIGHT_URL: there.address, GATEWRIGHT_TOKEN: adminToken, DATA_DIR: data, ...env }
  const running = run(program, { args, env: all, cwd })
  const { code } = await running.exited
  return { code, output: running.output() }
}

const withoutUrl = { GATEWRIGHT_URL: '' }

const group = (name: string, more = '') =>
  `version: 1\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} }${more} }\n`
const application = (slug: string) =>
  `version: 1\nentries:\n  - { model: service_core.application, identifiers: { slug: ${slug} }, attrs: { name: ${slug} } }\n`

const ownersOf = async (start: string) => {
  const rows = await there.on.db.application.findMany({
    where: { slug: { startsWith: start } },
    orderBy: { slug: 'asc' },
  })
  return rows.map(({ slug, owner }) => [slug, owner])
}

describe('a glob', () => {
  test.each([
    ['teams/*', 'teams/a/app.yaml', ['a']],
    ['teams/*', 'teams/a/deep/er/app.yaml', ['a']],
    ['teams/*', 'teams/app.yaml', ['app.yaml']],
    ['teams/*/', 'teams/app.yaml', null],
    ['teams/*/', 'teams/a/app.yaml', ['a']],
    ['teams/*', 'other/teams/a/app.yaml', null],
    ['teams', 'teams/a/app.yaml', []],
    ['team', 'teams/a/app.yaml', null],
    ['apps/*.yaml', 'apps/grafana.yaml', ['grafana']],
    ['apps/*.yaml', 'apps/grafanaXyaml', null],
    ['apps/*-*.yaml', 'apps/a-b-c.yaml', ['a-b', 'c']],
    ['*/apps/*', 'eu/apps/wiki/app.yaml', ['eu', 'wiki']],
    ['a(b)+[c]$/*', 'a(b)+[c]$/d', ['d']],
  ])('%s and %s', (glob, path, stars) => {
    expect(patternOf(glob).exec(`${path}/`)?.slice(1) ?? null).toEqual(stars)
  })
})

describe('is found', () => {
  const files = {
    'gatewright.yaml':
      'owners: { "teams/*": "pf-$1" }\nenvironments: { dev: { url: http://127.0.0.1:9, context: dev.yaml } }\n',
    'dev.yaml': 'region: eu\n',
    'teams/a/app.yaml': application('pf-a'),
    'teams/b/app.yaml': application('pf-b'),
    'shared/app.yaml': application('pf-shared'),
  }

  test.each([
    ['.', [], '.'],
    ['teams', [], '.'],
    ['.', ['.'], '.'],
    ['/', [], 'whole'],
  ])('from %s by %j: it and its context files are no documents', async (from, paths, what) => {
    const folder = folderOf(files)
    const found = await within(from === '/' ? from : join(folder, from), [
      'validate',
      ...(what === 'whole' ? [folder] : paths),
    ])
    expect(found.output).toMatch(
      /shared\/app\.yaml\n.*teams\/a\/app\.yaml\n.*b\/app\.yaml\n3 valid\n$|^(valid .*\n){3}3 valid\n$/,
    )
    expect(found.output).not.toMatch(/gatewright\.yaml|dev\.yaml/)
    expect(found.code).toBe(0)
  })

  test('each file has the owner of its path: from the folder, a folder of it, a file, and from elsewhere', async () => {
    const folder = folderOf(files)
    await exited(0, within(join(folder, 'teams'), ['apply', 'a']))
    expect(await ownersOf('pf-')).toEqual([['pf-a', 'pf-a']])
    await exited(0, within(folder, ['plan', 'teams/a/app.yaml']), 'unchanged')
    await exited(0, within('/', ['plan', join(folder, 'teams/a/app.yaml')]), 'unchanged')
    await exited(0, within(folder, ['apply']), '2 added, 0 changed, 0 deleted, 1 unchanged')
    expect(await ownersOf('pf-')).toEqual([
      ['pf-a', 'pf-a'],
      ['pf-b', 'pf-b'],
      ['pf-shared', null],
    ])
  })

  test('not above the folder that holds .git', async () => {
    const folder = folderOf({ 'gatewright.yaml': 'stak: x\n', 'repo/a/app.yaml': group('pf-git') })
    await exited(
      1,
      within(folder, ['validate', 'repo/a']),
      'gatewright.yaml:1:1 stak: Unknown field. Did you mean stack?',
    )
    mkdirSync(join(folder, 'repo/.git'))
    await exited(0, within(folder, ['validate', 'repo/a']), 'valid')
    await exited(1, within(join(folder, 'repo/a'), ['validate']), 'Name files or folders, or - for standard input.')
  })

  test('two of them are refused by name', async () => {
    const folder = folderOf({
      'one/gatewright.yaml': 'stack: pf-one\n',
      'one/a.yaml': group('pf-one'),
      'two/gatewright.yaml': 'stack: pf-two\n',
      'two/b.yaml': group('pf-two'),
    })
    const both = 'one/gatewright.yaml and two/gatewright.yaml are two projects: name the files of one.\n'
    expect(await within(folder, ['plan', 'one/a.yaml', 'two'])).toEqual({ code: 1, output: both })
    const above = folderOf({ 'gatewright.yaml': 'stack: pf-above\n', 'below/gatewright.yaml': 'stack: pf-below\n' })
    await exited(1, within(above, ['plan']), 'gatewright.yaml and below/gatewright.yaml are two projects')
  })
})

test.each([
  ['stak: x\n', '1:1 stak: Unknown field. Did you mean stack?'],
  ['stack: a,b\n', '1:1 stack: May have no comma'],
  [`stack: ${'x'.repeat(101)}\n`, '1:1 stack: Must be at most 100 characters.'],
  ['stack: [a]\n', '1:1 stack: Must be text.'],
  ['[]\n', '1:1 Must be an object.'],
  ['', 'gatewright.yaml: The file is empty, or holds only comments: write its content, or remove it.'],
  ['stack: "a\n', 'gatewright.yaml:'],
  ['owners:\n  "teams/*": "$2"\n', '2:3 owners.teams/*: $2 stands for nothing: the path has 1 *.'],
  ['owners:\n  teams/: "$1"\n', '2:3 owners.teams/: $1 stands for nothing: the path has no *.'],
  ['owners:\n  "**/teams": a\n', '2:3 owners.**/teams: Takes a path below this folder'],
  ['owners:\n  ../teams: a\n', '2:3 owners.../teams: Takes a path below this folder'],
  ['owners:\n  /teams: a\n', '2:3 owners./teams: Takes a path below this folder'],
  ['owners:\n  teams: 7\n', '2:3 owners.teams: Must be text.'],
  ['environments:\n  prod: { urll: x }\n', '2:11 environments.prod.urll: Unknown field. Did you mean url?'],
  ['environments:\n  prod: {}\n', '2:3 environments.prod.url: This field is required.'],
  ['environments:\n  prod: { url: ftp://x }\n', 'environments.prod.url: Is "ftp://x": it takes a URL that starts with'],
  ['environments:\n  prod: { url: "https://u:p@x" }\n', 'environments.prod.url: Holds a user name or a password'],
  ['"\\e[31mred": x\n', '1:1 \\u001b[31mred: Unknown field.'],
])('%j is refused where it stands', async (text, error) => {
  const folder = folderOf({ 'gatewright.yaml': text, 'a.yaml': group('pj-form') })
  const { code, output } = await within(folder, ['validate'])
  expect(output).toContain(error)
  expect(output).toContain('gatewright.yaml:')
  expect(output).not.toContain('u:p')
  expect(code).toBe(1)
})

describe('the owner of a file', () => {
  const rules = 'owners: { "teams/*/": "po-$1", "*.json": po-json }\n'

  test('is its own, then that of its path, then GATEWRIGHT_OWNER; the first rule that matches counts', async () => {
    const submission = async (name: string, more: object = {}) =>
      JSON.stringify({ ...(await named('saml', name)), ...more })
    const folder = folderOf({
      'gatewright.yaml': rules,
      'a.yaml': application('po-given'),
      'b.json': await submission('po-rule'),
      'c.json': await submission('po-own', { owner: 'po-mine' }),
      'teams/x/d.json': await submission('po-team'),
      'teams/x/e.yaml': `owner: po-blueprint\n${application('po-blueprint')}`,
    })
    await exited(0, within(folder, ['apply'], { GATEWRIGHT_OWNER: 'po-env' }))
    const expected = [
      ['po-blueprint', 'po-blueprint'],
      ['po-given', 'po-env'],
      ['po-own', 'po-mine'],
      ['po-rule', 'po-json'],
      ['po-team', 'po-x'],
    ]
    expect(await ownersOf('po-')).toEqual(expected)
    // One by one they are the same.
    for (const file of ['a.yaml', 'b.json', 'c.json', 'teams/x'])
      await exited(0, within(folder, ['plan', file], { GATEWRIGHT_OWNER: 'po-env' }), /0 to change, 0 to delete/)
    await exited(0, within(folder, ['apply', '--each'], { GATEWRIGHT_OWNER: 'po-env' }))
    expect(await ownersOf('po-')).toEqual(expected)
    const provider = await there.on.db.provider.findUniqueOrThrow({ where: { name: 'po-own' } })
    expect(provider.owner).toBe('po-mine')
  })

  test('of a submission is refused beside another --owner, and where it is no label', async () => {
    const body = await named('saml', 'po-sub')
    const folder = folderOf({
      'a.json': JSON.stringify({ owner: 'Po-Mine', ...body }),
      'b.json': JSON.stringify({ owner: 7, ...body }),
    })
    const other = 'a.json:1:2 owner: --owner is "po-other", and the document names the owner "Po-Mine": leave one out.'
    await exited(1, within(folder, ['plan', 'a.json', '--owner', 'po-other']), other)
    await exited(2, within(folder, ['plan', 'a.json', '--owner', 'Po-Mine']))
    for (const command of ['validate', 'plan'])
      await exited(1, within(folder, [command, 'b.json']), 'b.json:1:2 owner: Must be text.')
  })

  test('that makes no label is refused with its rule', async () => {
    const folder = folderOf({ 'gatewright.yaml': '\nowners: { "*": "$1" }\n', 'a, b/x.yaml': group('po-label') })
    const { output } = await exited(1, within(folder, ['validate']))
    expect(output).toMatch(
      /^gatewright\.yaml:2:11 owners\.\*: The owner of a, b\/x\.yaml would be "a, b": May have no comma/,
    )
  })
})

describe('the stack', () => {
  /** A service that answers nothing but 400. @returns the headers of its requests */
  async function refusing() {
    const seen: (string | undefined)[] = []
    const server = createServer(({ headers }, answer) => {
      const sent = headers['gatewright-stack']
      seen.push(sent === undefined ? undefined : Buffer.from(String(sent), 'latin1').toString('utf8'))
      answer.writeHead(400, { 'content-type': 'application/json' })
      answer.end('{"non_field_errors": ["Gatewright-Stack: no."], "code": "invalid"}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    atEnd(async () => void server.close())
    const address = server.address()
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
    return { seen, env: { GATEWRIGHT_URL: url } }
  }

  test('of the file or of --stack is sent; a refusal names the option', async () => {
    const { seen, env } = await refusing()
    const folder = folderOf({
      'gatewright.yaml': 'stack: corp/identität\n',
      'a.yaml': group('ps-a'),
      'b.yaml': group('ps-b'),
    })
    const bare = folderOf({ 'a.yaml': group('ps-a') })
    await exited(1, within(folder, ['plan'], env), '--stack: no.')
    await exited(1, within(folder, ['apply', '--stack', 'Corp/Identität'], env))
    await exited(1, within(folder, ['diff', 'a.yaml'], env))
    await exited(1, within(bare, ['plan', '.', '--stack', 'other'], env))
    await exited(1, within(bare, ['plan', '.'], env))
    // A part of the folder is not the stack.
    expect(seen).toEqual(['corp/identität', 'corp/identität', undefined, 'other', undefined])
  })

  test('is one: another --stack, --each and a wrong name are refused before anything is sent', async () => {
    const { seen, env } = await refusing()
    const folder = folderOf({ 'gatewright.yaml': 'stack: one\n', 'a.yaml': group('ps-a') })
    const two = '--stack is "two", and gatewright.yaml names the stack "one": leave one out.'
    await exited(1, within(folder, ['plan', '--stack', 'two'], env), two)
    await exited(1, within(folder, ['plan', '--each'], env), '--each is not for a stack')
    await exited(1, within(data, ['plan', folder, '--stack', 'a,b'], env), '--stack: May have no comma')
    expect(seen).toEqual([])
  })
})

describe('an environment', () => {
  const files = {
    'gatewright.yaml': `environments:
  here: { url: "${there.address}/", context: env/here.yaml }
  away: { url: http://127.0.0.1:9 }
  open: { url: http://iam.example.com }
`,
    'env/here.yaml': 'region: eu\nsize: 3\n',
    'teams/a.yaml': group('pe-a', ', attrs: { attributes: { region: !Context region, size: !Context size } }'),
    'teams/b.yaml': group('pe-b'),
  }
  const attributes = async () => (await there.on.db.group.findUniqueOrThrow({ where: { name: 'pe-a' } })).attributes

  test('gives URL and context, to files and to commands without files; --context-file and --context go before it', async () => {
    const folder = folderOf({ ...files, 'more.yaml': 'region: us\n', 'more.json': '{"region": "asia", "size": true}' })
    const more = join(folder, 'more.json')
    await exited(0, within(folder, ['apply', 'teams', '--env', 'here'], withoutUrl))
    expect(await attributes()).toEqual({ region: 'eu', size: 3 })
    await exited(0, within(folder, ['plan', 'teams'], { ...withoutUrl, GATEWRIGHT_ENV: 'here' }), 'unchanged')
    await exited(
      0,
      within(join(folder, 'teams'), ['runs', '--env', 'here', '--limit', '1'], withoutUrl),
      'teams/a.yaml',
    )
    await exited(0, within(folder, ['runs', '--limit', '1'], { ...withoutUrl, GATEWRIGHT_ENV: 'here' }), 'teams/a.yaml')
    await exited(3, within(folder, ['runs', '--env=away', '--timeout', '1'], withoutUrl), 'http://127.0.0.1:9 ')
    await exited(0, within(folder, ['apply', 'teams', '--env', 'here', '--context-file', more], withoutUrl))
    expect(await attributes()).toEqual({ region: 'asia', size: true })
    const both = ['--context-file', more, '--context', 'region=moon']
    await exited(0, within(folder, ['apply', 'teams', '--env', 'here', ...both], withoutUrl))
    expect(await attributes()).toEqual({ region: 'moon', size: true })
    await exited(0, within(folder, ['validate', 'teams', '--env', 'here'], { GATEWRIGHT_URL: 'no URL' }), '2 valid')
  })

  test('with the URL of GATEWRIGHT_URL is the same; another one is refused with both', async () => {
    const folder = folderOf(files)
    await exited(0, within(folder, ['runs', '--env', 'here', '--limit', '1']))
    const other = `GATEWRIGHT_URL is ${there.address}, and away of gatewright.yaml is http://127.0.0.1:9: leave one out.\n`
    const open = 'http://iam.example.com would send the access token unencrypted'
    await exited(1, within(folder, ['runs', '--env', 'open'], withoutUrl), open)
    for (const command of [['plan', 'teams/b.yaml'], ['runs']])
      expect(await within(folder, [...command, '--env', 'away'])).toEqual({ code: 1, output: other })
  })

  test('has its context below the folder, as !File has; --context-file may be anywhere', async () => {
    const outside = folderOf({ 'secret.yaml': 'region: eu\n' })
    const folder = folderOf({ 'a.yaml': files['teams/a.yaml'].replace('size: !Context size', 'size: 1') })
    symlinkSync(join(outside, 'secret.yaml'), join(folder, 'link.yaml'))
    for (const context of ['../secret.yaml', join(outside, 'secret.yaml'), 'link.yaml']) {
      const text = `environments: { dev: { url: http://127.0.0.1:9, context: ${context} } }\n`
      writeFileSync(join(folder, 'gatewright.yaml'), text)
      const why = `gatewright.yaml: the context of dev, ${JSON.stringify(context)}, is not below its folder.\n`
      expect(await within(folder, ['validate', '--env', 'dev'])).toEqual({ code: 1, output: why })
    }
    await exited(0, within(folder, ['validate', 'a.yaml', '--context-file', join(outside, 'secret.yaml')]), 'valid')
  })

  test('that is not there is refused with those that are', async () => {
    const folder = folderOf(files)
    for (const command of [['plan', 'teams'], ['runs']])
      expect(await within(folder, [...command, '--env', 'prod'])).toEqual({
        code: 1,
        output: 'gatewright.yaml has no environment "prod". It has here, away, open.\n',
      })
    const none = folderOf({ 'gatewright.yaml': 'stack: pe\n', 'x/a.yaml': group('pe-a') })
    await exited(1, within(none, ['plan', '--env', 'prod']), 'It has none.')
    const bare = folderOf({ 'a.yaml': group('pe-a') })
    await exited(1, within(bare, ['plan', 'a.yaml', '--env', 'prod']), '--env prod: there is no gatewright.yaml')
  })
})

describe('a key of the context that no file looks up', () => {
  const files = {
    'gatewright.yaml': `environments: { dev: { url: "${there.address}", context: dev.yaml } }\n`,
    'dev.yaml': 'region: eu\nregoin: us\n',
    'a.yaml': group(
      'pk-a',
      ', attrs: { attributes: { a: !Context [region, none], b: !If [false, !Context never, 1] } }',
    ),
    'b.yaml': group('pk-b'),
  }

  test('is refused with its place: the option, or file and line', async () => {
    const folder = folderOf(files)
    const lost = 'regoin: No file has !Context of this name. Did you mean region?\n'
    for (const command of ['validate', 'plan', 'apply'])
      expect(await within(folder, [command, '--env', 'dev'])).toEqual({ code: 1, output: `dev.yaml:2:1 ${lost}` })
    const option = ['--context', 'regoin=1', '--context', 'never=1']
    expect(await within(folder, ['validate', ...option])).toEqual({ code: 1, output: `--context ${lost}` })
    const file = ['--context-file', 'dev.yaml', '--context', 'regoin=1']
    expect(await within(folder, ['validate', ...file])).toEqual({
      code: 1,
      output: `--context ${lost}dev.yaml:2:1 ${lost}`,
    })
  })

  test('in a file is no error while only a part of the files is named', async () => {
    const folder = folderOf(files)
    await exited(0, within(folder, ['validate', 'b.yaml', '--env', 'dev']), 'valid')
    await exited(
      1,
      within(folder, ['validate', 'b.yaml', '--env', 'dev', '--context', 'region=1']),
      '--context region: ',
    )
  })

  test('!Context without a value and a default is refused at its place', async () => {
    const folder = folderOf({ ...files, 'c.yaml': group('pk-c', ', attrs: { attributes: { a: !Context absent } }') })
    await exited(
      1,
      within(folder, ['validate', '--env', 'dev']),
      /c\.yaml:3:\d+ !Context: there is no --context absent=VALUE/,
    )
  })

  test.each([
    ['region: [a]\n', 'dev.yaml:1:1 region: Must be text, a number, true or false.'],
    ['region: null\n', 'dev.yaml:1:1 region: Must be text, a number, true or false.'],
    ['- a\n', 'dev.yaml:1:1 Must be an object.'],
    ['region: 12345678901234567890\n', 'dev.yaml:1:9 Is a number that is not kept'],
    ['region: "a\n', 'dev.yaml:'],
  ])('a context file %j is refused', async (text, error) => {
    await exited(1, within(folderOf({ ...files, 'dev.yaml': text }), ['validate', '--env', 'dev']), error)
  })

  test('a context file that is not there is named', async () => {
    const absent = ['validate', 'b.yaml', '--context-file', 'absent.yaml']
    await exited(1, within(folderOf(files), absent), 'absent.yaml: Cannot be read (ENOENT')
  })
})
