import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { permissionsOf } from '../../src/permissions.ts'
import { adminToken, exited, freshFolder, listening, plainEnvironment, shellIn } from '../support/kit.ts'

/** `gatewright env`, `gatewright show` and the outputs of `apply --json`: what an application needs, and until when. */

const folder = freshFolder()
const there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder }, 'src/cli/gatewright.ts')
const { gatewright, on } = there

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
  const env = { ...plainEnvironment(), GATEWRIGHT_URL: there.address, GATEWRIGHT_TOKEN: adminToken }
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
    gatewright(['show', 'shown']),
    /^shown {2}"shown"\n {2}owner {6}team-shown \(made by admin\)\n {2}provider {3}OAuth2\/OpenID Provider "shown"\n {2}last run {3}\S+ {2}\S+ {2}applied /,
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
  // The newest run that set the secret decides: what an older one generated is another.
  await exited(0, gatewright(['apply', files('sent')]))
  await exited(0, gatewright(['apply', files('sent', ', client_secret: a secret of the caller itself')]))
  expect((await streams('env sent --format json')).output).not.toContain('SENT_CLIENT_SECRET')
})

test('a secret that another user set last is none of the own run that generated the one before', async () => {
  const { token } = await on.make.user({
    permissions: [...permissionsOf('application'), ...permissionsOf('oauth2provider')],
  })
  const own = { GATEWRIGHT_TOKEN: token }
  await exited(0, gatewright(['apply', files('twice')], own))
  await exited(0, gatewright(['env', 'twice'], own), "TWICE_CLIENT_SECRET='")
  await exited(0, gatewright(['apply', files('twice', ', client_secret: a secret of the caller itself')]))
  await exited(
    0,
    gatewright(['env', 'twice'], own),
    /^TWICE_CLIENT_SECRET cannot be read: no run that you may see set it last\.$/m,
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
