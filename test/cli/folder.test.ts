import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { adminToken } from '../support/engine.ts'
import { freshFolder } from '../support/folder.ts'
import { type Listening, listening } from '../support/gatewright.ts'
import { named } from '../support/installation.ts'

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
      /^4 to add, 0 to change, 0 to delete, 0 unchanged\nchanges +\S+0-shared\.yaml and 2 more files\n/,
    )
    expect(planned.output.match(/ would be created/g)).toHaveLength(4)
    expect(planned.output.match(/^ +plan [\w-]{22}$/gm)).toHaveLength(1)
    expect(planned.code).toBe(2)
    expect(await groups('fold-')).toBe(0)
    expect(await there.gatewright(['apply', folder, '--plan-file', out])).toMatchObject({ code: 0 })
    const rows = await there.on.db.group.findMany({ where: { name: { startsWith: 'fold-' } } })
    const keys = new Map(rows.map(({ pk, name }) => [name, pk]))
    expect(rows.find(({ name }) => name === 'fold-a-2')?.parentPk).toBe(keys.get('fold-a'))
    expect(rows.find(({ name }) => name === 'fold-b')?.parentPk).toBe(keys.get('fold-shared'))
    expect(await there.gatewright(['plan', folder])).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^0 to add, 0 to change, 0 to delete, 4 unchanged\nunchanged /),
    })
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

  test('--each sends them one by one', async () => {
    const folder = folderOf({
      'a.yaml': document(group('fold-each')),
      'b.yaml': document(group('fold-each-2', ', attrs: { parnt: 1 }')),
    })
    const { code, output } = await there.gatewright(['apply', folder, '--each'])
    expect(code).toBe(1)
    expect(output).toMatch(/^applied .*a\.yaml\n[\s\S]*refused .*b\.yaml/)
    expect(await groups('fold-each')).toBe(1)
  })

  test('--keep-going goes on behind a file that is refused', async () => {
    const folder = folderOf({
      'a.yaml': document(group('fold-going', ', attrs: { parnt: 1 }')),
      'b.yaml': document(group('fold-going-2')),
    })
    expect(await there.gatewright(['apply', folder, '--keep-going'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('--keep-going is for --each.'),
    })
    const { code, output } = await there.gatewright(['apply', folder, '--each', '--keep-going'])
    expect(code).toBe(1)
    expect(output).toMatch(/^refused .*a\.yaml[\s\S]*\napplied .*b\.yaml\n/)
    expect(await groups('fold-going')).toBe(1)
  })
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

test('what two files declare is refused with both places, and nothing is sent', async () => {
  const folder = folderOf({
    'a.yaml': document(application('fold-twice'), application('fold-once')),
    'b.yaml': document(application('fold-other'), application('fold-twice')),
  })
  expect(await there.gatewright(['validate', folder])).toMatchObject({
    code: 1,
    output: expect.stringContaining(', too:'),
  })
  const { code, output } = await there.gatewright(['apply', folder])
  expect(code).toBe(1)
  expect(output).toMatch(/a\.yaml:3:\d+ service_core\.application "fold-twice" is declared in \S+b\.yaml:4:\d+, too/)
  expect(output).toMatch(/b\.yaml:4:\d+ service_core\.application "fold-twice" is declared in \S+a\.yaml:3:\d+, too/)
  expect(await slugs('fold-')).not.toContain('fold-once')
})

describe('prune', () => {
  const owner = ['--owner', 'fold-pruned']

  test('looks at all files of the owner; a reviewed plan acknowledges what it deletes', async () => {
    const folder = folderOf({ 'a.yaml': pruning('fold-p-a', 'fold-p-gone'), 'b.yaml': pruning('fold-p-b') })
    expect(await there.gatewright(['apply', folder, ...owner])).toMatchObject({ code: 0 })
    expect(await there.gatewright(['apply', folder, ...owner])).toMatchObject({ code: 0 })
    writeFileSync(join(folder, 'a.yaml'), pruning('fold-p-a'))
    const out = join(freshFolder(), 'plans.json')
    expect(await there.gatewright(['plan', folder, ...owner, '--out', out])).toMatchObject({ code: 2 })
    expect(await there.gatewright(['apply', folder, ...owner])).toMatchObject({ code: 1 })
    expect(await slugs('fold-p-')).toEqual(['fold-p-a', 'fold-p-b', 'fold-p-gone'])
    const other = folderOf({ 'late.yaml': document(application('fold-p-late')) })
    expect(await there.gatewright(['apply', other, ...owner])).toMatchObject({ code: 0 })
    const surprised = await there.gatewright(['apply', folder, ...owner, '--plan-file', out])
    expect(surprised).toMatchObject({ code: 1, output: expect.stringContaining('(412)') })
    expect(await slugs('fold-p-')).toHaveLength(4)
    await there.gatewright(['plan', folder, ...owner, '--out', out])
    expect(await there.gatewright(['apply', folder, ...owner, '--plan-file', out])).toMatchObject({ code: 0 })
    expect(await slugs('fold-p-')).toEqual(['fold-p-a', 'fold-p-b'])
  })

  test('the last one is deleted by a document without entries; without prune it is refused', async () => {
    const folder = folderOf({ 'a.yaml': pruning('fold-l-a') })
    const last = ['--owner', 'fold-last']
    expect(await there.gatewright(['apply', folder, ...last])).toMatchObject({ code: 0 })
    writeFileSync(join(folder, 'a.yaml'), 'version: 1\nentries: []\n')
    expect(await there.gatewright(['apply', folder, ...last])).toMatchObject({
      code: 1,
      output: expect.stringContaining('a.yaml:2:1 entries: Must be at least 1 entries.'),
    })
    writeFileSync(join(folder, 'a.yaml'), pruning())
    const out = join(freshFolder(), 'plans.json')
    expect(await there.gatewright(['plan', folder, ...last, '--out', out])).toMatchObject({ code: 2 })
    expect(await there.gatewright(['apply', folder, ...last])).toMatchObject({ code: 1 })
    expect(await slugs('fold-l-')).toEqual(['fold-l-a'])
    expect(await there.gatewright(['apply', folder, ...last, '--plan-file', out])).toMatchObject({ code: 0 })
    expect(await slugs('fold-l-')).toEqual([])
    expect(await there.gatewright(['apply', folder, ...last])).toMatchObject({ code: 0 })
  })

  test('--each is refused for files of one owner, and one number for several owners', async () => {
    const folder = folderOf({ 'a.yaml': pruning('fold-q-a'), 'b.yaml': pruning('fold-q-b') })
    expect(await there.gatewright(['apply', folder, ...owner, '--each'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('prune is about all of them'),
    })
    const owned = folderOf({
      'a.yaml': `owner: q1\n${pruning('fold-q-a')}`,
      'b.yaml': `owner: q2\n${pruning('fold-q-b')}`,
    })
    expect(await there.gatewright(['apply', owned, '--allow-deletes', '1'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('--allow-deletes is one number'),
    })
    expect(await slugs('fold-q')).toEqual([])
  })
})
