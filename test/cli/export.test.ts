import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { documentLimits } from '../../src/document/document.ts'
import { adminToken, applyPath, atEnd, execute, freePort, freshFolder, listening, named, sql } from '../support/kit.ts'

/** `gatewright export`, as a process. That its text makes the same again: test/cli/round-trip. */

const folder = freshFolder()
const out = join(folder, 'export.yaml')
const { address, gatewright, on } = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })

/** @returns the document, and what the program says beside it */
async function exported(args: string[], env: Record<string, string> = {}) {
  const { code, output } = await gatewright(['export', '--out', out, ...args], env)
  expect(code, output).toBe(0)
  return { text: readFileSync(out, 'utf8'), notes: output }
}

async function applied(body: unknown, headers: Record<string, string> = {}): Promise<void> {
  const answer = await on.admin.put(applyPath, body, { headers })
  expect(answer).toMatchObject({ status: 200, json: { applied: true } })
}

const modelsOf = (text: string) => [...text.matchAll(/^ +- model: (\S+)/gm)].map(([, model]) => model)

test('--owner exports what has this label with what it refers to, and names the owner', async () => {
  const flow = await on.db.flow.create({
    data: { pk: randomUUID(), name: 'x', slug: 'owned-flow', designation: 'authorization' },
  })
  const provider = { authorization_flow: flow.slug, certificate: 'Gatewright self-signed' }
  await applied(await named('ldap', 'owned', { provider }), { 'gatewright-owner': 'team-a' })
  await applied(await named('ldap', 'not-owned'), { 'gatewright-owner': 'team-b' })
  const { text, notes } = await exported(['--owner', 'team-a'])
  expect(text).toMatch(/^owner: team-a$/m)
  expect(text).toMatch(/slug: owned-flow$/m)
  expect(text).not.toMatch(/not-owned|scim|pk:/)
  expect([...new Set(modelsOf(text))]).toEqual([
    'service_flows.flow',
    'service_crypto.certificatekeypair',
    'service_providers_ldap.ldapprovider',
    'service_core.application',
  ])
  expect(notes).toMatch(/^Each installation generates its own:\n {2}certificate key pair "Gatewright self-signed"$/m)
  expect(await gatewright(['plan', out])).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^\d+ unchanged in 1 file$/m),
  })
  const all = await exported([], { GATEWRIGHT_OWNER: 'team-a' })
  expect(all.text).toMatch(/not-owned/)
  expect(all.text).not.toMatch(/^owner:/m)
  expect(all.text.match(/^ {4}owner: \S+$/gm)?.sort()).toEqual([
    ...Array(2).fill('    owner: team-a'),
    ...Array(2).fill('    owner: team-b'),
  ])
})

test('--only leaves out the rest, to which it refers by name, and lists it', async () => {
  const name = randomUUID()
  const { pk } = await on.db.group.create({ data: { pk: randomUUID(), name } })
  const provider = { filter_group: pk, property_mappings: ['gatewright/scim/user'] }
  await applied(await named('scim', 'only', { provider }))
  const { text, notes } = await exported(['--only', 'scimprovider'])
  expect(modelsOf(text)).toEqual(['service_providers_scim.scimprovider'])
  expect(text).toMatch(/property_mappings:\n +- gatewright\/scim\/user\n/)
  expect(text).toContain(`filter_group: !Find\n        - service_core.group\n        - name: ${name}\n`)
  expect(notes).toContain(`  group "${name}"\n`)
  const env = { GW_ONLY_TOKEN: 'example-only-scim-token' }
  expect(await gatewright(['plan', out], env)).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^\d+ unchanged in 1 file$/m),
  })
  const words = await exported(['--only', 'flow,service_rbac.role', '--only', 'provider'])
  expect(new Set(modelsOf(words.text))).not.toContain('service_core.application')
  expect(modelsOf(words.text)).toContain('service_rbac.role')
})

test('--json has the variables, and the document where it goes to no file', async () => {
  await applied(await named('oauth2', 'json'))
  const { code, output } = await gatewright(['export', '--only', 'oauth2provider', '--json'])
  expect(code).toBe(0)
  const parsed = JSON.parse(output.slice(0, output.lastIndexOf('}') + 1))
  expect(parsed).toMatchObject({
    exit: 0,
    entries: 1,
    variables: [
      {
        ...{ name: 'GW_JSON_CLIENT_SECRET', model: 'service_providers_oauth2.oauth2provider', field: 'client_secret' },
        ...{ identifiers: { name: 'json' }, json: false, may_be_empty: false },
      },
    ],
    document: expect.stringContaining('# Variables with its secrets:\n#   GW_JSON_CLIENT_SECRET  client_secret of '),
  })
})

test('a field that an earlier version did not store has its default', async () => {
  await applied(await named('radius', 'older'))
  await execute(on.db, sql`UPDATE providers SET settings = settings - 'mfa_support' WHERE name = 'older'`)
  expect((await exported(['--only', 'radiusprovider'])).text).toMatch(/^ +mfa_support: true$/m)
})

describe('nothing is written, and the exit code is 1', () => {
  const refused = async (args: string[], env: Record<string, string> = {}) => {
    const file = join(folder, randomUUID())
    const { code, output } = await gatewright(['export', '--out', file, ...args], env)
    expect(existsSync(file)).toBe(false)
    expect(output).not.toMatch(/^\s+at /m)
    expect(code).toBe(1)
    return output
  }

  test('for a wrong command line', async () => {
    expect(await refused(['x'])).toMatch(/^export takes no names/)
    expect(await refused(['--owner', ''])).toMatch(/^--owner: May not be empty\./)
    expect(await refused(['--only', 'flow,user'])).toMatch(/^--only: "user" is none of flow, propertymapping, /)
    expect(await refused(['--owner', 'nothing-has-it'])).toMatch(/^There is nothing to export\./)
  })

  test('for property mappings that nothing tells apart', async () => {
    const same = { name: 'twice', kind: 'oauth2' }
    const [first, second] = [randomUUID(), randomUUID()]
    await on.db.propertyMapping.create({ data: { pk: first, ...same } })
    await on.db.propertyMapping.create({ data: { pk: second, ...same, managed: 'told apart' } })
    const output = await refused([])
    await on.db.propertyMapping.updateMany({ where: { pk: first }, data: { managed: 'so is this' } })
    await exported([])
    expect(output).toMatch(/^More than one property mapping has {"name":"twice","kind":"oauth2"}: /)
  })

  test('for more entries than a document may have', async () => {
    const count = documentLimits.entries + 1
    const data = Array.from({ length: count }, (_, index) => ({
      ...{ pk: randomUUID(), name: 'x', slug: `many-${index}`, designation: 'recovery' as const },
    }))
    await on.db.flow.createMany({ data })
    let asked = 0
    const url = await inFront(async (path, text) => {
      asked += Number(path.includes('/flows/'))
      return text
    })
    const output = await refused(['--only', 'flow'], { GATEWRIGHT_URL: url })
    // Files may have as many as they like.
    const folders = join(folder, randomUUID())
    const { code, output: written } = await gatewright(['export', '--only', 'flow', '--out', `${folders}/`])
    expect(code, written).toBe(0)
    expect(readdirSync(join(folders, '1-shared'))).toHaveLength(Math.ceil((count + 4) / 2_000))
    await on.db.flow.deleteMany({ where: { slug: { startsWith: 'many-' } } })
    expect(asked).toBe(1)
    expect(output).toMatch(new RegExp(`^These are \\d+ entries, and a document may have ${documentLimits.entries}: `))
  })

  test('when the service fails on the way: what stands there stays', async () => {
    await on.db.flow.createMany({
      data: Array.from({ length: 600 }, (_, index) => ({
        ...{ pk: randomUUID(), name: 'x', slug: `half-${index}`, designation: 'recovery' as const },
      })),
    })
    const url = await inFront(async (path, text) => (path.includes('page=2') ? 'no JSON' : text))
    const [file, folders, fresh] = [out, join(folder, randomUUID()), join(folder, randomUUID())]
    for (const place of [file, join(folders, 'kept.yaml')]) {
      mkdirSync(dirname(place), { recursive: true })
      writeFileSync(place, 'as it was')
    }
    for (const place of [
      ['--out', file],
      ['--out', folders],
      ['--out', `${fresh}/`],
    ]) {
      const { code } = await gatewright(['export', '--only', 'flow', ...place], { GATEWRIGHT_URL: url })
      expect(code).not.toBe(0)
    }
    await on.db.flow.deleteMany({ where: { slug: { startsWith: 'half-' } } })
    expect(readFileSync(file, 'utf8')).toBe('as it was')
    expect(readdirSync(folders)).toEqual(['kept.yaml'])
    expect(existsSync(fresh)).toBe(false)
  })

  test('for a caller who may not see all kinds of provider', async () => {
    const kinds = [...on.engine.registry.kinds.values()].map(({ resource }) => `view_${resource}`)
    const others = ['view_flow', 'view_propertymapping', 'view_certificatekeypair', 'view_role', 'view_group']
    const most = await on.make.user({ permissions: [...others, ...kinds.slice(1)] })
    const all = await on.make.user({ permissions: [...others, ...kinds] })
    expect(await refused(['--only', 'provider'], { GATEWRIGHT_TOKEN: most.token })).toContain(kinds[0])
    await exported(['--only', 'provider'], { GATEWRIGHT_TOKEN: all.token })
  })

  test('for a service with a field that this program does not know', async () => {
    const url = await inFront(async (_, text) =>
      text.replaceAll('"meta_publisher":', '"meta_colour":null,"meta_publisher":'),
    )
    expect(await refused(['--only', 'application'], { GATEWRIGHT_URL: url })).toMatch(
      /^The service and this program have different fields: meta_colour of application\./,
    )
  })
})

test('--owner and --application read what they export, and not whole lists', async () => {
  await applied(await named('ldap', 'narrow'), { 'gatewright-owner': 'team-narrow' })
  await on.db.group.createMany({
    data: Array.from({ length: 3 }, (_, index) => ({ pk: randomUUID(), name: `narrow-${index}` })),
  })
  const scim = { provider: { filter_group: 'narrow-1' }, app: { backchannel_providers: [] } }
  await applied(await named('scim', 'narrow-scim', scim), { 'gatewright-owner': 'team-narrow' })
  const asked: string[] = []
  const url = await inFront(async (path, text) => {
    asked.push(path)
    return text
  })
  const ofOwner = await exported(['--owner', 'team-narrow'], { GATEWRIGHT_URL: url })
  expect(ofOwner.text).toMatch(/name: narrow-1\n/)
  expect(ofOwner.text).not.toMatch(/narrow-[02]\n/)
  const rowsOf = (list: string) =>
    asked.filter((path) => path.includes(list) && !path.includes('page_size=1&') && !path.endsWith('page_size=1'))
  for (const list of ['/core/applications/', '/providers/all/'])
    for (const path of rowsOf(list)) expect(path).toMatch(/[?&](?:owner=team-narrow|pk=\d+)/)
  for (const path of rowsOf('/core/groups/')) expect(path).toMatch(/[?&]pk=/)
  asked.splice(0)
  const ofOne = await exported(['--application', 'narrow'], { GATEWRIGHT_URL: url })
  expect(modelsOf(ofOne.text)).toContain('service_providers_ldap.ldapprovider')
  expect(modelsOf(ofOne.text)).not.toContain('service_providers_scim.scimprovider')
  for (const path of rowsOf('/core/applications/')) expect(path).toMatch(/[?&]slug=narrow(?:&|$)/)
  for (const path of rowsOf('/providers/all/')) expect(path).toMatch(/[?&]pk=\d+/)
})

test('what changes while it is read is read again', async () => {
  let times = 0
  const url = await inFront(async (path, text) => {
    // The providers were read.
    if (path.includes('/core/applications/') && ++times === 1) {
      await applied(await named('rac', 'meanwhile'))
      return null
    }
    return text
  })
  const { text, notes } = await exported([], { GATEWRIGHT_URL: url })
  expect(times).toBe(2)
  expect(notes).toMatch(/^waiting: application "meanwhile" has a provider that was not read$/m)
  expect(text).toMatch(/service_providers_rac\.racprovider\n +identifiers:\n +name: meanwhile\n/)
})

/**
 * A server in front of the service that changes what it answers.
 *
 * @param change null: the service is asked again
 */
async function inFront(change: (path: string, text: string) => Promise<string | null>): Promise<string> {
  const server = createServer(async ({ url = '', headers }, answer) => {
    const ask = async () => {
      const asked = await fetch(`${address}${url}`, { headers: { authorization: headers.authorization ?? '' } })
      return { status: asked.status, text: await asked.text() }
    }
    const first = await ask()
    const changed = await change(url, first.text)
    const { status, text } = changed === null ? await ask() : { ...first, text: changed }
    answer.writeHead(status, { 'content-type': 'application/json' }).end(text)
  })
  atEnd(async () => void server.close())
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return `http://127.0.0.1:${port}`
}
