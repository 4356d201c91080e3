import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { permissionsOf } from '../../src/permissions.ts'
import { adminToken, answered, exited, freshFolder, listening, plainEnvironment, shellIn } from '../support/kit.ts'

/** `gatewright env`, `gatewright show` and the outputs of `apply --json`: what an application needs, and until when. */

const folder = freshFolder()
const there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder }, 'src/cli/gatewright.ts')
const { on } = there

/** It may not read secrets: it has those alone that its own runs show. */
const deployer = await on.make.user({
  permissions: [...permissionsOf('application'), ...permissionsOf('oauth2provider')],
})
const gatewright: typeof there.gatewright = (args, environment) =>
  there.gatewright(args, { GATEWRIGHT_TOKEN: deployer.token, ...environment })

const asAdmin = { GATEWRIGHT_TOKEN: adminToken }

/** A client id with all that a format has to quote. */
const awkward = `it's "$HOME" \`x\` \\ 100% a=b # {}`

function files(slug: string, attrs = '') {
  const path = join(folder, `${slug}.yaml`)
  writeFileSync(
    path,
    `version: 1
owner: team-${slug}
entries:
  - model: service_providers_oauth2.oauth2provider
    id: client
    identifiers: { name: ${slug} }
    attrs: { authorization_flow: default-authorization-explicit, invalidation_flow: default-provider-invalidation${attrs} }
  - model: service_core.application
    identifiers: { slug: ${slug} }
    attrs: { name: ${slug}, provider: !KeyOf client }
`,
  )
  return path
}

/** What each stream has. */
async function streams(args: string) {
  const program = `'${process.execPath}' '${join(import.meta.dirname, '../../src/cli/gatewright.ts')}'`
  const env = { ...plainEnvironment(), GATEWRIGHT_URL: there.address, GATEWRIGHT_TOKEN: deployer.token }
  const { code, output, errors } = await shellIn(folder)(`${program} ${args}`, env)
  return { code, output, errors }
}

test('apply --json has what was generated; env prints it in each format, and says until when', async () => {
  const path = files('outputs', `, client_id: ${JSON.stringify(awkward)}`)
  const other = files('others')
  const { results } = JSON.parse((await exited(0, gatewright(['apply', path, other, '--json']))).output)
  const [{ values, readable_until: until }] = results[0].outputs
  expect(results[0].outputs).toMatchObject([
    { model: 'service_providers_oauth2.oauth2provider', identifiers: { name: 'outputs' } },
    { identifiers: { name: 'others' } },
  ])
  const secret: string = values.client_secret
  expect(secret).toMatch(/^\w{128}$/)
  const { finished_at: finishedAt } = Object((await on.admin.get(results[0].run)).json)
  expect(Date.parse(until)).toBeGreaterThan(Date.parse(finishedAt))

  const all = { OUTPUTS_CLIENT_ID: awkward, OUTPUTS_CLIENT_SECRET: secret }
  const dotenv = await streams('env outputs')
  expect(dotenv.errors).toMatch(
    new RegExp(`^OUTPUTS_CLIENT_SECRET: run \\S+ generated it; it can be read until ${until}\\.\\n$`),
  )
  writeFileSync(join(folder, '.env'), dotenv.output)
  const sourced = await shellIn(folder)(
    '. ./.env; printf "%s\\n%s" "$OUTPUTS_CLIENT_ID" "$OUTPUTS_CLIENT_SECRET"',
    plainEnvironment(),
  )
  expect(sourced.output).toBe(Object.values(all).join('\n'))

  expect(JSON.parse((await streams('env outputs --format json')).output)).toEqual(all)
  expect(load((await streams('env outputs --format k8s-secret')).output)).toEqual({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'outputs' },
    type: 'Opaque',
    stringData: all,
  })
  const github = await streams('env outputs --format github')
  expect(github.errors).toMatch(new RegExp(`^::add-mask::${secret}\\n`))
  const found = github.output.matchAll(/^(\w+)<<(\S+)\n([\s\S]*?)\n\2\n/gm)
  expect(Object.fromEntries([...found].map(([, name, , value]) => [name, value]))).toEqual(all)
})

test('show has no secret; what is over, or was sent, cannot be read any more', async () => {
  const first = await exited(0, gatewright(['apply', files('shown'), '--json']))
  const secret: string = JSON.parse(first.output).results[0].outputs[0].values.client_secret
  const { output } = await exited(
    0,
    gatewright(['show', 'shown'], asAdmin),
    /^shown {2}"shown"\n {2}owner {6}team-shown \(made by user-\S+\)\n {2}provider {3}OAuth2\/OpenID Provider "shown"\n {2}last run {3}\S+ {2}\S+ {2}applied /,
  )
  const json = await exited(0, gatewright(['show', 'shown', '--json']))
  for (const text of [output, json.output]) expect(text).not.toContain(secret)
  expect(JSON.parse(json.output)).toMatchObject({
    application: { slug: 'shown', owner: 'team-shown' },
    outputs: [
      { name: 'SHOWN_CLIENT_ID', value: expect.any(String) },
      { name: 'SHOWN_CLIENT_SECRET', value: null, secret: true, readable: true },
    ],
  })
  await on.db.run.updateMany({ where: { generated: { not: null } }, data: { generatedUntil: new Date(0) } })
  const over = await streams('env shown')
  expect(over.output).toMatch(/^SHOWN_CLIENT_ID='\w+'\n$/)
  expect(over.errors).toMatch(/^SHOWN_CLIENT_SECRET cannot be read: run \S+ set it: .* the time to read it is over/)
  const opens = 'with read_oauth2provider_secrets, gatewright env prints it'
  await exited(0, gatewright(['show', 'shown'], asAdmin), `or the run is of another user; ${opens})\n`)
  await exited(0, gatewright(['env', 'shown'], asAdmin), `SHOWN_CLIENT_SECRET='${secret}'\n`)
  // The newest run that set the secret decides: what an older one generated is another.
  await exited(0, gatewright(['apply', files('sent')]))
  await exited(0, gatewright(['apply', files('sent', ', client_secret: a secret of the caller itself')]))
  expect((await streams('env sent --format json')).output).not.toContain('SENT_CLIENT_SECRET')
})

test('a secret that another user set last is none of the own run that generated the one before', async () => {
  await exited(0, gatewright(['apply', files('twice')]))
  await exited(0, gatewright(['env', 'twice']), "TWICE_CLIENT_SECRET='")
  await exited(0, gatewright(['apply', files('twice', ', client_secret: a secret of the caller itself')], asAdmin))
  await exited(
    0,
    gatewright(['env', 'twice']),
    /^TWICE_CLIENT_SECRET cannot be read: no run that you may see set it last; with read_oauth2provider_secrets, gatewright env prints it\.$/m,
  )
})

test('env prints a secret that the caller may read, and the issuer of the server that signs users in', async () => {
  await exited(0, gatewright(['apply', files('read', ', client_secret: the secret of the caller itself')]))
  const permissions = ['view_application', 'view_oauth2provider', 'record_sign_in']
  const reader = await on.make.user({ permissions: [...permissions, 'read_oauth2provider_secrets'] })
  const print = async (args = ['env', 'read', '--format', 'json']) =>
    JSON.parse((await exited(0, gatewright(args, { GATEWRIGHT_TOKEN: reader.token }))).output)
  const id = expect.any(String)
  const secret = 'the secret of the caller itself'
  expect(await print()).toEqual({ READ_CLIENT_ID: id, READ_CLIENT_SECRET: secret })
  const self = '/api/v3/consumers/self/'
  await answered(200, reader.put(self, { issuer: 'https://id.example.com' }))
  expect(await print()).toEqual({
    READ_ISSUER: 'https://id.example.com',
    READ_CLIENT_ID: id,
    READ_CLIENT_SECRET: secret,
  })
  expect(JSON.stringify(await print(['show', 'read', '--json']))).not.toContain(secret)
  const other = await on.make.user({ permissions })
  await answered(200, other.put(self, { issuer: 'https://id.example.com' }))
  expect((await streams('env read')).output).toMatch(/^READ_ISSUER='https:..id.example.com'\nREAD_CLIENT_ID='\w+'\n$/)
  await answered(200, other.put(self, { issuer: 'https://eu.example.com' }))
  const several = await streams('env read')
  expect(several.output).not.toContain('READ_ISSUER')
  expect(several.errors).toContain(
    'READ_ISSUER cannot be read: several servers sign users in: https://eu.example.com, https://id.example.com.\n',
  )
})

test.each([
  [['env'], 'env takes the slug of one application.'],
  [['env', 'outputs', '--format', 'xml'], '--format takes dotenv, json, github, k8s-secret.'],
  [['env', 'nowhere'], 'There is no such application.'],
  [['show', 'a', 'b'], 'show takes the slug of one application.'],
])('%j: 1', async (args, text) => {
  await exited(1, gatewright(args), text)
})
