import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { safe } from '../../src/cli/export/layout.ts'
import { adminToken, exited, freshFolder, type Listening, listening, named } from '../support/kit.ts'

/** `gatewright export --out DIR/`, as a process: one file for each application, by owner. */

const folder = freshFolder()

const scim = 'the token of a SCIM server'
const shared = `version: 1
entries:
  - { model: service_rbac.role, identifiers: { name: Readers }, attrs: { permissions: [view_application] } }
  - { model: service_core.group, id: a, identifiers: { name: 6f7e0000-0000-4000-8000-00000000aaaa } }
  - { model: service_core.group, identifiers: { name: above }, attrs: { parent: !KeyOf a, roles: [Readers] } }
  - { model: service_flows.flow, identifiers: { slug: ask }, attrs: { name: Ask, designation: authorization } }
  - { model: service_providers_radius.radiusprovider, identifiers: { name: 'Büro / 2' }, attrs: { authorization_flow: ask } }
`

/** The longest slug. */
const longest = `free-${'x'.repeat(250)}`
const bigOwner = ['--owner', 'Team B', '--allow-takeover']
const lonely = `version: 1
entries:
  - model: service_providers_scim.scimprovider
    identifiers: { name: sync-b }
    attrs: { url: https://b.example/, token: ${scim}, filter_group: above }
`

const env = { GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder }
const there = await listening(env)
const other = await listening(env)
await configure()

async function apply(file: string, content: unknown, ...args: string[]): Promise<void> {
  const path = join(folder, file)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  const { code, output } = await there.gatewright(['apply', path, ...args])
  expect(code, output).toBe(0)
}

async function configure(): Promise<void> {
  await apply('shared.yaml', shared)
  await apply(
    'wiki.json',
    await named('oauth2', 'wiki', { provider: { authorization_flow: 'ask' } }),
    '--owner',
    'team-a',
  )
  await apply('sync.json', await named('scim', 'sync', { provider: { token: scim } }), '--owner', 'team-b')
  await apply('lonely.yaml', lonely, '--owner', 'team-b')
  await apply('big.json', await named('ldap', 'Big'), '--owner', 'Team B')
  await apply('free.json', await named('saml', longest, { provider: { name: 'free' } }))
}

const filesBelow = (path: string): string[] =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.yaml'))
    .sort()

const textsBelow = (path: string) => filesBelow(path).map((file) => [file, readFileSync(join(path, file), 'utf8')])

/** A value for each variable that the files name at their heads. */
const variablesOf = (path: string): Record<string, string> =>
  Object.fromEntries(
    textsBelow(path).flatMap(([, text = '']) =>
      [...text.matchAll(/^# {3}(GW_\w+) {2}(\w+) of/gm)].map(([, name = '', field]) => [
        name,
        field === 'token' ? scim : `a value for ${name}`,
      ]),
    ),
  )

const exportTo = async (from: Listening, name: string, ...args: string[]) => {
  const path = join(folder, name)
  const { code, output } = await from.gatewright(['export', '--out', `${path}/`, ...args])
  expect(code, output).toBe(0)
  return { path, output }
}

test('one file for each application with its provider, by owner, and one for each kind of what they share', async () => {
  const { path, output } = await exportTo(there, 'layout')
  expect(filesBelow(path)).toEqual([
    ...['flows', 'property-mappings', 'key-pairs', 'roles', 'groups'].map(
      (name, index) => `1-shared/${index + 1}-${name}.yaml`,
    ),
    `2-providers/no-owner/${safe('Büro / 2')}.yaml`,
    '2-providers/team-b/sync-b.yaml',
    `3-applications/no-owner/${safe(longest)}.yaml`,
    '3-applications/team-a/wiki.yaml',
    `3-applications/${safe('team b')}/${safe('Big')}.yaml`,
    '3-applications/team-b/sync.yaml',
  ])
  const wiki = readFileSync(join(path, '3-applications/team-a/wiki.yaml'), 'utf8')
  expect(wiki).toMatch(/^owner: team-a$/m)
  expect(wiki).toMatch(/^# {3}GW_WIKI_CLIENT_SECRET {2}/m)
  expect(wiki).toMatch(/client_secret:\n +create: !Env GW_WIKI_CLIENT_SECRET\n/)
  expect([...wiki.matchAll(/- model: (\S+)/g)].map(([, model]) => model)).toEqual([
    'service_providers_oauth2.oauth2provider',
    'service_core.application',
  ])
  expect(readFileSync(join(path, `3-applications/no-owner/${safe(longest)}.yaml`), 'utf8')).not.toMatch(/^owner:/m)
  expect(output).toMatch(/^11 files below .*layout$/m)
})

test('the folder is unchanged here; elsewhere it makes the same, which is exported as the same files', async () => {
  const { path } = await exportTo(there, 'first')
  const env = variablesOf(path)
  await exited(0, there.gatewright(['plan', path], env))
  await exited(0, other.gatewright(['apply', path], env))
  const again = await exportTo(other, 'second')
  expect(textsBelow(again.path)).toEqual(textsBelow(path))
  expect(await other.gatewright(['plan', again.path], env)).toMatchObject({ code: 0 })
})

test('files that stand there for what is gone are named, and kept', async () => {
  const stale = join(folder, 'stale/3-applications/team-a/gone.yaml')
  mkdirSync(dirname(stale), { recursive: true })
  for (const file of [stale, join(folder, 'stale/README.md')]) writeFileSync(file, 'x')
  const { output } = await exportTo(there, 'stale')
  expect(output).toContain(`Remove those whose objects are gone:\n  ${stale}\n`)
  expect(output).not.toContain('README.md')
  expect(readFileSync(stale, 'utf8')).toBe('x')
})

describe('filters', () => {
  test('by application: it, its providers, and what they refer to', async () => {
    const { path } = await exportTo(there, 'only-wiki', '--application', 'wiki')
    expect(filesBelow(path)).toEqual([
      '1-shared/1-flows.yaml',
      '1-shared/2-property-mappings.yaml',
      '1-shared/3-key-pairs.yaml',
      '3-applications/team-a/wiki.yaml',
    ])
    const { code, output } = await there.gatewright(['export', '--application', 'wiki', '--application', longest])
    expect(code).toBe(0)
    expect(output.match(/model: service_core\.application/g)).toHaveLength(2)
    expect((await exited(1, there.gatewright(['export', '--application', 'none']))).output).toBe(
      '--application: there is no application "none".\n',
    )
  })

  test('by owner and kind', async () => {
    const { path } = await exportTo(there, 'team-b', '--owner', 'team-b')
    expect(filesBelow(path).filter((file) => !file.startsWith('1-'))).toEqual([
      '2-providers/team-b/sync-b.yaml',
      '3-applications/team-b/sync.yaml',
    ])
    const scims = await exportTo(there, 'scims', '--only', 'scimprovider', '--application', 'sync')
    expect(filesBelow(scims.path)).toEqual(['2-providers/team-b/sync.yaml'])
  })
})

test('--json names the files with their owners', async () => {
  const { output } = await exportTo(there, 'json', '--application', 'wiki', '--only', 'application', '--json')
  expect(JSON.parse(output.slice(0, output.lastIndexOf('\n}') + 2))).toMatchObject({
    ...{ exit: 0, entries: 1, variables: [], directory: join(folder, 'json'), other_files: [] },
    files: [{ file: '3-applications/team-a/wiki.yaml', owner: 'team-a', entries: 1 }],
  })
})

test('all permissions that are missing are named at once', async () => {
  const { token } = await there.on.make.user({ permissions: ['view_flow', 'view_group', 'view_application'] })
  const { code, output } = await there.gatewright(['export'], { GATEWRIGHT_TOKEN: token })
  const kinds = [...there.on.engine.registry.kinds.values()].map(({ resource }) => `view_${resource}`)
  const missing = ['view_propertymapping', 'view_certificatekeypair', 'view_role', 'view_trustedissuer', ...kinds]
  expect(output).toBe(
    `This export needs ${missing.length} permissions that you lack: ${missing.join(', ')}. --only leaves out models.\n`,
  )
  expect(code).toBe(1)
})

test('a provider stands by itself when it has another owner than its application, and is named', async () => {
  await apply('big.json', await named('ldap', 'Big', { app: { backchannel_providers: ['sync-b'] } }), ...bigOwner)
  await apply('lonely.yaml', lonely, '--owner', 'team-b', '--allow-takeover')
  const { path, output } = await exportTo(there, 'two-owners', '--application', 'Big')
  expect(filesBelow(path).filter((file) => !file.startsWith('1-'))).toEqual([
    '2-providers/team-b/sync-b.yaml',
    `3-applications/${safe('team b')}/${safe('Big')}.yaml`,
  ])
  expect(output).toContain('Has another owner than its application:\n  provider scim "sync-b"\n')
  expect(await there.gatewright(['plan', path], variablesOf(path))).toMatchObject({ code: 0 })
})

test('one document has the owners of everything, and so has an empty installation that gets it, or the folder', async () => {
  const ownersIn = async ({ on }: Listening) => {
    const [apps, providers] = await Promise.all([
      on.db.application.findMany({ select: { slug: true, owner: true }, orderBy: { slug: 'asc' } }),
      on.db.provider.findMany({ select: { name: true, owner: true }, orderBy: { name: 'asc' } }),
    ])
    return [apps, providers]
  }
  const { path } = await exportTo(there, 'whole')
  const env = variablesOf(path)
  const file = join(folder, 'whole.yaml')
  expect(await there.gatewright(['export', '--out', file])).toMatchObject({ code: 0 })
  const text = readFileSync(file, 'utf8')
  expect(text).toMatch(/^ {4}owner: team-a$/m)
  expect(await there.gatewright(['plan', file], env)).toMatchObject({ code: 0 })
  for (const [index, from] of [file, path].entries()) {
    const empty = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })
    await exited(2, empty.gatewright(['plan', from], env))
    await exited(0, empty.gatewright(['apply', from], env))
    expect(await ownersIn(empty)).toEqual(await ownersIn(there))
    const again = join(folder, `again-${index}.yaml`)
    expect(await empty.gatewright(['export', '--out', again])).toMatchObject({ code: 0 })
    expect(readFileSync(again, 'utf8')).toBe(text)
  }
})

test('nothing to export is refused', async () => {
  const path = join(folder, 'none')
  expect((await exited(1, there.gatewright(['export', '--out', `${path}/`, '--owner', 'nothing-has-it']))).output).toBe(
    'There is nothing to export.\n',
  )
})

describe('names of files', () => {
  test.each(['wiki', 'a.b-c_d', 'x'.repeat(60)])('%s is its own', (text) => {
    expect(safe(text)).toBe(text)
  })

  const texts = ['Wiki', 'WIKI', 'wíki', 'a/b', 'a\\b', '../x', '.hidden', 'con', 'nul.txt', 'node_modules', 'no-owner']
  const others = [
    '日本',
    'x'.repeat(61),
    'x'.repeat(62),
    '-',
    'trailing.',
    'wiki-0123abcd',
    safe('Wiki'),
    'a b',
    'a-b ',
  ]

  test('are safe, and different for different texts', () => {
    const names = [...texts, ...others].map(safe)
    for (const name of names) expect(name).toMatch(/^[a-z\d][a-z\d._-]{0,60}-[\da-f]{8}$/)
    expect(new Set(names).size).toBe(names.length)
  })
})
