import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { adminToken, exited, freshFolder, type Listening, listening, named } from '../support/kit.ts'

/** The files of a call are one document: `gatewright plan FOLDER` and what follows from it. */

let there: Listening
beforeAll(async () => {
  there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: freshFolder() }, 'src/cli/gatewright.ts')
})

/** A folder with these files. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = freshFolder()
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

const document = (...entries: string[]) => `version: 1\nentries:\n${entries.map((entry) => `  - ${entry}\n`).join('')}`
const group = (name: string, more = '') => `{ model: service_core.group, identifiers: { name: ${name} }${more} }`
const application = (slug: string) =>
  `{ model: service_core.application, identifiers: { slug: ${slug} }, attrs: { name: ${slug} } }`
const pruning = (...slugs: string[]) =>
  `version: 1\nprune: true\nentries:${slugs.length === 0 ? ' []' : ''}\n${slugs.map((slug) => `  - ${application(slug)}\n`).join('')}`

const groups = (start: string) => there.on.db.group.count({ where: { name: { startsWith: start } } })
const slugs = async (start: string) => {
  const where = { slug: { startsWith: start } }
  const rows = await there.on.db.application.findMany({ where, orderBy: { slug: 'asc' } })
  return rows.map(({ slug }) => slug)
}

test('a file may name what a later file creates; a circle is refused once, at its first place', async () => {
  const [low, top] = [group('turn-low', ', attrs: { parent: turn-top }'), group('turn-top')]
  const folder = folderOf({ 'a.yaml': document(low), 'b.yaml': document(group('turn-x'), top) })
  expect(await there.gatewright(['apply', folder])).toMatchObject({ code: 0 })
  const { output } = await there.gatewright(['plan', folder])
  expect(output).toMatch(/^0 to add, 0 to change, 0 to delete\n3 unchanged in 2 files\n/)
  writeFileSync(join(folder, 'b.yaml'), document(group('turn-top', ', attrs: { parent: turn-low }')))
  const refused = await there.gatewright(['plan', folder])
  const way = 'group "turn-low" -> group "turn-top" -> group "turn-low"'
  const line = `${folder}/a.yaml:3:5 entries.0: Refers to itself in a circle: ${way}.`
  expect(refused.output.split('\n').filter((each) => each.includes('itself in a circle'))).toEqual([
    expect.stringContaining(line),
  ])
})

test('a file of a folder that is no document is refused by its name, and nothing is sent', async () => {
  const folder = folderOf({ 'a.yaml': document(group('odd-a')), 'web/package.json': '{}', '.b/c.json': '{}' })
  const { output } = await exited(1, there.gatewright(['apply', folder]))
  const why = 'Is neither a submission (app, provider_model, provider) nor a blueprint (entries).'
  expect(output).toBe(
    `refused     ${folder}/web/package.json\n            ${why} A folder stands for all of its .yaml, .yml and .json files: move this one out, or name the files.\nnot tried: 1 file\n1 not tried, 1 refused\n`,
  )
  expect(await groups('odd-')).toBe(0)
  await exited(0, there.gatewright(['apply', join(folder, 'a.yaml')]))
  const named = await exited(1, there.gatewright(['apply', join(folder, 'web/package.json')]))
  expect(named.output).toBe(`refused     ${folder}/web/package.json\n            ${why}\n`)
})

describe('a shared file, and files of teams that name it', () => {
  const files = {
    '0-shared.yaml': document(group('fold-shared', ', id: own, attrs: { attributes: { a: 1 } }')),
    'team-a/a.yaml': document(
      group('fold-a', ', id: own, attrs: { parent: fold-shared }'),
      group('fold-a-2', ', attrs: { parent: !KeyOf own }'),
    ),
    'team-b/b.yaml': document(group('fold-b', ', attrs: { parent: fold-shared }')),
  }

  test('are planned and applied as one, with one tag', async () => {
    const folder = folderOf(files)
    const out = join(freshFolder(), 'plans.json')
    const planned = await there.gatewright(['plan', folder, '--out', out])
    expect(planned.output).toMatch(
      /^4 to add, 0 to change, 0 to delete\n\+ service_core\.group "fold-shared" \(\S+0-shared\.yaml\)\n/,
    )
    expect(planned.output.match(/^\+ /gm)).toHaveLength(4)
    expect(JSON.parse(readFileSync(out, 'utf8')).plans).toHaveLength(1)
    expect(planned.code).toBe(2)
    expect(await groups('fold-')).toBe(0)
    expect(await there.gatewright(['apply', folder, '--plan-file', out])).toMatchObject({ code: 0 })
    const rows = await there.on.db.group.findMany({ where: { name: { startsWith: 'fold-' } } })
    const keys = new Map(rows.map(({ pk, name }) => [name, pk]))
    expect(rows.find(({ name }) => name === 'fold-a-2')?.parentPk).toBe(keys.get('fold-a'))
    expect(rows.find(({ name }) => name === 'fold-b')?.parentPk).toBe(keys.get('fold-shared'))
    await exited(
      0,
      there.gatewright(['plan', folder]),
      /^0 to add, 0 to change, 0 to delete\n4 unchanged in 3 files\n$/,
    )
  })

  test('nothing is applied when one is refused; the place is that of its own file', async () => {
    const folder = folderOf({
      'a.yaml': document(group('fold-none')),
      'b.yaml': document(group('fold-none-2'), group('fold-none-3', ', attrs: { parnt: 1 }')),
    })
    const { code, output } = await there.gatewright(['apply', folder])
    expect(code).toBe(1)
    expect(output).toMatch(/\(400\)\n +\S+b\.yaml:4:\d+ entries\.1\.parnt: Unknown field\. Did you mean parent\?\n/)
    expect(await groups('fold-none')).toBe(0)
  })

  test('--each sends them one by one, and stops at the first that is refused', async () => {
    const folder = folderOf({
      'a.yaml': document(group('fold-each')),
      'b.yaml': document(group('fold-each-2', ', attrs: { parent: fold-each-none }')),
    })
    const { code, output } = await there.gatewright(['apply', folder, '--each'])
    expect(code).toBe(1)
    expect(output).toMatch(/^applied .*a\.yaml\n[\s\S]*refused .*b\.yaml \(400\)/)
    expect(await groups('fold-each')).toBe(1)
  })

  test('--keep-going goes on behind a file that is refused', async () => {
    const folder = folderOf({
      'a.yaml': document(group('fold-going', ', attrs: { parnt: 1 }')),
      'b.yaml': document(group('fold-going-2')),
    })
    await exited(1, there.gatewright(['apply', folder, '--keep-going']), '--keep-going is for --each.')
    const { code, output } = await there.gatewright(['apply', folder, '--each', '--keep-going'])
    expect(code).toBe(1)
    expect(output).toMatch(/^refused .*a\.yaml[\s\S]*\napplied .*b\.yaml\n/)
    expect(await groups('fold-going')).toBe(1)
  })
})

test.each([
  ['entries', 5_001, ''],
  ['bytes', 50, `, attrs: { attributes: { text: ${'x'.repeat(100_000)} } }`],
])('too many %s for one document are refused before anything is sent, with what to do', async (_, count, more) => {
  const file = (name: string) =>
    document(...Array.from({ length: count }, (_, index) => group(`${name}-${index}`, more)))
  const folder = folderOf({ 'a.yaml': file('fold-much-a'), 'b.yaml': file('fold-much-b') })
  expect((await exited(1, there.gatewright(['plan', folder]))).output).toMatch(
    new RegExp(`^These 2 files have ${2 * count} entries and \\d+ bytes.* 10000 and 8388608: .* --each\\.\n$`),
  )
})

test('--json and the summary name each file of a document', async () => {
  const folder = folderOf({ 'a.yaml': document(group('fold-json-a')), 'b.yaml': document(group('fold-json-b')) })
  const summary = join(freshFolder(), 'summary.md')
  const { output } = await there.gatewright(['plan', folder, '--json', '--summary', summary])
  const files = ['a.yaml', 'b.yaml'].map((name) => join(folder, name))
  expect(JSON.parse(output)).toMatchObject({ results: [{ files, outcome: 'changes' }] })
  for (const file of files) expect(readFileSync(summary, 'utf8')).toContain(`| ${file} | changes |\n`)
})

test('submissions are part of it', async () => {
  const folder = folderOf({
    'a.json': JSON.stringify(await named('oauth2', 'fold-sub-a')),
    'b.json': JSON.stringify(await named('saml', 'fold-sub-b')),
    'c.yaml': document(application('fold-sub-c')),
  })
  expect(await there.gatewright(['apply', folder])).toMatchObject({ code: 0 })
  expect(await slugs('fold-sub')).toEqual(['fold-sub-a', 'fold-sub-b', 'fold-sub-c'])
  const { provider } = await there.on.db.application.findUniqueOrThrow({
    where: { slug: 'fold-sub-b' },
    select: { provider: { select: { name: true } } },
  })
  expect(provider).toEqual({ name: 'fold-sub-b' })
})

test('what two files declare otherwise is refused with both places, and nothing is sent', async () => {
  const named = (slug: string, name: string) =>
    `{ model: service_core.application, identifiers: { slug: ${slug} }, attrs: { name: ${name} } }`
  const folder = folderOf({
    'a.yaml': document(named('fold-twice', 'One'), application('fold-once')),
    'b.yaml': document(application('fold-other'), named('fold-twice', 'Two')),
    'c.yaml': document(application('fold-once')),
  })
  for (const command of ['validate', 'plan', 'apply', 'diff']) {
    const { code, output } = await there.gatewright([command, folder])
    expect(code).toBe(1)
    expect(output).toMatch(/a\.yaml:3:\d+ service_core\.application "fold-twice" is declared in \S+b\.yaml:4:\d+, too/)
    expect(output).toMatch(/b\.yaml:4:\d+ service_core\.application "fold-twice" is declared in \S+a\.yaml:3:\d+, too/)
    expect(output).not.toContain('"fold-once" is declared')
  }
  expect(await slugs('fold-')).not.toContain('fold-once')
})

test('one name is one object, in whatever form it is declared, also with --each', async () => {
  const provider = (kind: string, name: string) =>
    `{ model: service_providers_${kind}.${kind}provider, identifiers: { name: ${name} } }`
  const files = {
    'a.yaml': document(provider('oauth2', 'Fold Form'), group('fold-form')),
    'b.yaml': document(provider('ldap', '" fold  form"')),
    'c.yaml': `version: 1\nentries:\n  all:\n    - ${group('FOLD-FORM')}\n    - ${group('fold-skipped', ', conditions: [false]')}\n`,
    'd.yaml': document(group('fold-skipped')),
  }
  const folder = folderOf(files)
  for (const options of [[], ['--each'], ['--each', '--keep-going']]) {
    const { code, output } = await there.gatewright(['apply', folder, ...options])
    expect(code).toBe(1)
    expect(output).toMatch(
      /a\.yaml:3:\d+ service_providers_oauth2\.oauth2provider "Fold Form" is declared in \S+b\.yaml:3:\d+, too/,
    )
    expect(output).toMatch(
      /b\.yaml:3:\d+ service_providers_ldap\.ldapprovider " fold {2}form" is declared in \S+a\.yaml:3:\d+, too/,
    )
    expect(output).toMatch(/c\.yaml:4:\d+ service_core\.group "FOLD-FORM" is declared in \S+a\.yaml:4:\d+, too/)
    expect(output).not.toContain('fold-skipped" is declared')
  }
  expect(await groups('fold-form')).toBe(0)
})

describe('files of several owners', () => {
  const owned = (owner: string, text: string) => `owner: ${owner}\n${text}`
  const provider = (
    name: string,
    more = '',
  ) => `{ model: service_providers_scim.scimprovider, identifiers: { name: ${name} }, attrs: {
      url: 'https://example.com/', token: a token of many letters${more} } }`
  const mapping = `{ model: service_mappings.propertymapping, identifiers: { name: fold-o-map, kind: scim }, attrs: { expression: '{}' } }`
  const uses = ', filter_group: fold-o-shared, property_mappings: [fold-o-map]'
  const files = () => ({
    '0-shared.yaml': document(group('fold-o-shared'), mapping),
    'team-a/a.yaml': owned('fold-a', document(provider('fold-o-a', uses), application('fold-o-a'))),
    'team-b/b.yaml': owned(
      'fold-b',
      `prune: true\n${document(provider('fold-o-b', uses), application('fold-o-gone'))}`,
    ),
    'team-b/c.yaml': owned('fold-b', document(application('fold-o-c'))),
  })
  const owners = async () => {
    const [apps, providers] = await Promise.all([
      there.on.db.application.findMany({ where: { slug: { startsWith: 'fold-o-' } }, orderBy: { slug: 'asc' } }),
      there.on.db.provider.findMany({ where: { name: { startsWith: 'fold-o-' } }, orderBy: { name: 'asc' } }),
    ])
    return [...apps.map(({ slug, owner }) => [slug, owner]), ...providers.map(({ name, owner }) => [name, owner])]
  }
  /** The paths of its files are a part of the name of its stack. */
  const folder = folderOf(files())
  const all = [
    ['fold-o-a', 'fold-a'],
    ['fold-o-c', 'fold-b'],
    ['fold-o-gone', 'fold-b'],
    ['fold-o-a', 'fold-a'],
    ['fold-o-b', 'fold-b'],
  ]

  test('are planned where nothing of it is there, applied by that one tag, and unchanged again', async () => {
    const out = join(freshFolder(), 'plans.json')
    const planned = await exited(2, there.gatewright(['plan', folder, '--out', out]))
    expect(planned.output.match(/^\+ /gm)).toHaveLength(7)
    expect(JSON.parse(readFileSync(out, 'utf8')).plans).toHaveLength(1)
    expect(await owners()).toEqual([])
    expect(await there.gatewright(['apply', folder, '--plan-file', out])).toMatchObject({ code: 0 })
    expect(await owners()).toEqual(all)
    const again = await there.gatewright(['apply', folder])
    expect(again.output).toMatch(
      /^0 added, 0 changed, 0 deleted, 7 unchanged\nunchanged +\S+0-shared\.yaml and 3 more files\n$/,
    )
    const { results } = Object((await there.on.admin.get('/api/v3/blueprints/runs/?owner=fold-b&mode=apply')).json)
    const { owner, owners: named } = Object(
      (await there.on.admin.get(`/api/v3/blueprints/runs/${results[0].id}/`)).json,
    )
    expect([owner, named]).toEqual([null, ['fold-a', 'fold-b']])
  })

  test('prune of one of them makes all of them a stack: what no file names any more is deleted', async () => {
    writeFileSync(join(folder, 'team-a/a.yaml'), owned('fold-a', document(provider('fold-o-a', uses))))
    const less = `prune: true\n${document(provider('fold-o-b', uses))}`
    writeFileSync(join(folder, 'team-b/b.yaml'), owned('fold-b', less))
    await exited(0, there.gatewright(['apply', folder]), 'application "fold-o-gone" is left over')
    expect(await owners()).toEqual(all)
    expect(await there.gatewright(['apply', folder, '--allow-deletes', '2'])).toMatchObject({ code: 0 })
    expect(await owners()).toEqual(all.slice(1).filter(([name]) => name !== 'fold-o-gone'))
  })

  test('a token that is bound to one of them is refused with the entry; what it applied alone it sees', async () => {
    const permissions = ['view', 'add', 'change', 'delete'].flatMap((verb) =>
      ['application', 'scimprovider', 'group', 'propertymapping'].map((each) => `${verb}_${each}`),
    )
    const made = await there.on.make.user({ permissions: [...permissions, 'view_run'], owners: ['fold-b'] })
    const env = { GATEWRIGHT_TOKEN: made.token }
    const folder = folderOf({ ...files(), 'team-b/b.yaml': owned('fold-b', document(provider('fold-o-b', uses))) })
    const { code, output } = await there.gatewright(['plan', folder], env)
    expect(code).toBe(1)
    expect(output).toContain(
      'You may not write provider scim "fold-o-a" of owner "fold-a": the permissions hold for rows of owner "fold-b" only.',
    )
    expect((await there.gatewright(['runs'], env)).output).not.toContain('0-shared.yaml')
    await exited(0, there.gatewright(['apply', join(folder, 'team-b')], env))
    expect((await there.gatewright(['runs', '--owner', 'fold-b'], env)).output).toMatch(
      /team-b\/b\.yaml and 1 more file/,
    )
  })

  test('GATEWRIGHT_OWNER and --owner are for files without one; another one than that of the file is refused', async () => {
    const folder = folderOf({
      'a.yaml': document(application('fold-o-g1')),
      'b.yaml': owned('fold-b', document(application('fold-o-g2'))),
      'c.json': JSON.stringify(await named('saml', 'fold-o-g3')),
    })
    const refused = await exited(1, there.gatewright(['plan', folder, '--owner', 'fold-g']))
    expect(refused.output).toMatch(
      /b\.yaml:1:1 owner: --owner is "fold-g", and the document names the owner "fold-b": leave one out\./,
    )
    expect(await there.gatewright(['apply', folder], { GATEWRIGHT_OWNER: 'fold-g' })).toMatchObject({ code: 0 })
    const found = new Map((await owners()) as [string, string][])
    expect(['fold-o-g1', 'fold-o-g2', 'fold-o-g3'].map((each) => found.get(each))).toEqual([
      'fold-g',
      'fold-b',
      'fold-g',
    ])
  })

  test('prune of a file takes its owner; errors stand in the file', async () => {
    const folder = folderOf({
      'a.yaml': `version: 1\nprune: true\nentries: []\n`,
      'b.yaml': owned('fold-b', 'version: 1\nmetadata: 7\nentries: []\n'),
    })
    const { code, output } = await there.gatewright(['plan', folder])
    expect(code).toBe(1)
    expect(output).toMatch(/a\.yaml:2:1 prune: It takes an owner: --owner, or owner of the document\./)
    expect(output).toMatch(/b\.yaml:3:1 metadata: /)
  })

  test('entries in sections have their places', async () => {
    const folder = folderOf({
      'a.yaml': document(group('fold-section')),
      'b.yaml': `version: 1\nentries:\n  first:\n    - ${group('fold-section-1')}\n  second:\n    - ${group('fold-section-2', ', attrs: { parnt: 1 }')}\n`,
    })
    const { output } = await there.gatewright(['plan', folder])
    expect(output).toMatch(/b\.yaml:6:\d+ entries\.second\.0\.(attrs\.)?parnt: Unknown field\. Did you mean parent\?/)
  })
})

describe('prune', () => {
  const owner = ['--owner', 'fold-pruned']

  test('makes the files of a call a stack; a reviewed plan acknowledges what it deletes, and no more', async () => {
    const folder = folderOf({ 'a.yaml': pruning('fold-p-a', 'fold-p-gone'), 'b.yaml': pruning('fold-p-b') })
    expect(await there.gatewright(['apply', folder, ...owner])).toMatchObject({ code: 0 })
    expect(await there.gatewright(['apply', folder, ...owner])).toMatchObject({ code: 0 })
    writeFileSync(join(folder, 'a.yaml'), pruning('fold-p-a'))
    const out = join(freshFolder(), 'plans.json')
    expect(await there.gatewright(['plan', folder, ...owner, '--out', out])).toMatchObject({ code: 2 })
    await exited(0, there.gatewright(['apply', folder, ...owner]), 'application "fold-p-gone" is left over')
    const other = folderOf({ 'late.yaml': document(application('fold-p-late')) })
    expect(await there.gatewright(['apply', other, ...owner])).toMatchObject({ code: 0 })
    writeFileSync(join(folder, 'a.yaml'), pruning('fold-p-a', 'fold-p-more'))
    expect(await there.gatewright(['apply', folder, ...owner])).toMatchObject({ code: 0 })
    writeFileSync(join(folder, 'a.yaml'), pruning('fold-p-a'))
    await exited(1, there.gatewright(['apply', folder, ...owner, '--plan-file', out]), '(412)')
    expect(await slugs('fold-p-')).toHaveLength(5)
    await there.gatewright(['plan', folder, ...owner, '--out', out])
    expect(await there.gatewright(['apply', folder, ...owner, '--plan-file', out])).toMatchObject({ code: 0 })
    expect(await slugs('fold-p-')).toEqual(['fold-p-a', 'fold-p-b', 'fold-p-late'])
  })

  test('the last one is deleted by a document without entries; without prune it is refused', async () => {
    const folder = folderOf({ 'a.yaml': pruning('fold-l-a') })
    const last = ['--owner', 'fold-last']
    expect(await there.gatewright(['apply', folder, ...last])).toMatchObject({ code: 0 })
    writeFileSync(join(folder, 'a.yaml'), 'version: 1\nentries: []\n')
    await exited(1, there.gatewright(['apply', folder, ...last]), 'a.yaml:2:1 entries: Must be at least 1 entries.')
    writeFileSync(join(folder, 'a.yaml'), pruning())
    const out = join(freshFolder(), 'plans.json')
    expect(await there.gatewright(['plan', folder, ...last, '--out', out])).toMatchObject({ code: 2 })
    await exited(0, there.gatewright(['apply', folder, ...last]), 'application "fold-l-a" is left over')
    expect(await slugs('fold-l-')).toEqual(['fold-l-a'])
    expect(await there.gatewright(['apply', folder, ...last, '--plan-file', out])).toMatchObject({ code: 0 })
    expect(await slugs('fold-l-')).toEqual([])
    expect(await there.gatewright(['apply', folder, ...last])).toMatchObject({ code: 0 })
  })

  test('--each is refused for files of one owner; one number is about several owners', async () => {
    const folder = folderOf({ 'a.yaml': pruning('fold-q-a'), 'b.yaml': pruning('fold-q-b') })
    await exited(1, there.gatewright(['apply', folder, ...owner, '--each']), 'prune is about all of them')
    expect(await slugs('fold-q')).toEqual([])
    const owned = folderOf({
      'a.yaml': `owner: q1\n${pruning('fold-q-a', 'fold-q-c')}`,
      'b.yaml': `owner: q2\n${pruning('fold-q-b', 'fold-q-d')}`,
    })
    expect(await there.gatewright(['apply', owned])).toMatchObject({ code: 0 })
    for (const each of ['a', 'b'])
      writeFileSync(join(owned, `${each}.yaml`), `owner: ${each === 'a' ? 'q1' : 'q2'}\n${pruning(`fold-q-${each}`)}`)
    expect(await there.gatewright(['apply', owned, '--allow-deletes', '1'])).toMatchObject({ code: 1 })
    expect(await slugs('fold-q')).toHaveLength(4)
    expect(await there.gatewright(['apply', owned, '--allow-deletes', '2'])).toMatchObject({ code: 0 })
    expect(await slugs('fold-q')).toEqual(['fold-q-a', 'fold-q-b'])
  })
})
