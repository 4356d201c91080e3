import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import {
  adminToken,
  aFlow,
  aGroup,
  aKeyPair,
  anApplication,
  aProvider,
  aRole,
  aUser,
  exited,
  freshFolder,
  type Installation,
  installation,
  type Made,
  run,
} from '../support/kit.ts'
import { installCli } from '../support/packed-cli.ts'

/** A week of a repository of three teams, as its pipeline runs the installed program. */

let on: Installation
let program: string
let url: string
let pipeline: Made
beforeAll(async () => {
  on = await installation()
  url = await on.app.listen({ port: 0, host: '127.0.0.1' })
  program = await installCli(freshFolder())
  pipeline = await on.make.user({ superuser: true })
  for (const [folder, stack] of [
    [repository, 'corp/identity'],
    [ofSales, 'corp/sales'],
  ] as const) {
    const environments = { prod: { url, ...(folder === repository && { context: 'prod.yaml' }) } }
    write(folder, 'gatewright.yaml', { stack, owners: { 'teams/*/': '$1' }, environments })
  }
  write(repository, 'prod.yaml', { wiki: 'https://wiki.corp.example/' })
}, 300_000)

const repository = freshFolder()
/** Another team with a repository of its own. */
const ofSales = freshFolder()
const plans = join(freshFolder(), 'plans.json')

function write(folder: string, file: string, content: object): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  const text = JSON.stringify(content, null, 2)
  // JSON is YAML, but for tags.
  writeFileSync(join(folder, file), text.replaceAll(/"!(\w+) ([^"]*)"/g, '!$1 $2'))
}
const entries = (...all: object[]) => ({ version: 1, entries: all })

async function gatewright(args: string, { cwd = repository, token = pipeline.token } = {}) {
  const env = { GATEWRIGHT_ENV: 'prod', GATEWRIGHT_TOKEN: token, SCIM_TOKEN: 'a token of SCIM, of many letters' }
  const running = run(program, { args: args.split(' '), cwd, env })
  const { code } = await running.exited
  return { code, output: running.output() }
}
const plan = (output: string | RegExp) => exited(2, gatewright(`plan --out ${plans}`), output)
const apply = (output: string | RegExp) => exited(0, gatewright(`apply --plan-file ${plans}`), output)

/** One file of each model, which refer to each other. */
const leaving: Readonly<Record<string, object>> = {
  'shared/flow.yaml': aFlow('visitors', { name: 'Visitors', title: 'Welcome', designation: 'authorization' }),
  'shared/mapping.yaml': {
    model: 'service_mappings.propertymapping',
    identifiers: { kind: 'oauth2', name: 'floor' },
    attrs: { scope_name: 'floor', expression: 'return { floor: 3 }' },
  },
  'shared/key-pair.yaml': aKeyPair('visitors'),
  'shared/role.yaml': aRole('reception', { permissions: ['view_user'] }),
  'shared/group.yaml': aGroup('reception', { roles: ['reception'] }),
  'shared/user.yaml': aUser('door', { name: 'Door', type: 'service_account', groups: ['reception'] }),
  'teams/doors/oauth2.yaml': aProvider('oauth2', 'visitors', {
    authorization_flow: 'visitors',
    invalidation_flow: 'default-provider-invalidation',
    redirect_uris: [{ matching_mode: 'strict', url: 'https://visitors.corp.example/' }],
    signing_key: 'visitors',
    property_mappings: ['floor'],
  }),
  'teams/doors/scim.yaml': aProvider('scim', 'visitors to SCIM', {
    url: 'https://scim.corp.example',
    token: '!Env SCIM_TOKEN',
    filter_group: 'reception',
  }),
  'teams/doors/application.yaml': anApplication('visitors', {
    name: 'Visitors',
    provider: 'visitors',
    backchannel_providers: ['visitors to SCIM'],
  }),
}
const leave = Object.values(leaving).length

/** What stands of these, by their names. */
async function standing(): Promise<number> {
  const { db } = on
  const [name, slug] = [{ in: ['visitors', 'visitors to SCIM', 'reception', 'floor'] }, 'visitors']
  const counts = await Promise.all([
    db.flow.count({ where: { slug } }),
    db.propertyMapping.count({ where: { name } }),
    db.certificateKeyPair.count({ where: { name } }),
    db.role.count({ where: { name } }),
    db.group.count({ where: { name } }),
    db.user.count({ where: { username: 'door' } }),
    db.provider.count({ where: { name } }),
    db.application.count({ where: { slug } }),
  ])
  return counts.reduce((sum, each) => sum + each)
}
const application = (slug: string) => on.db.application.findUnique({ where: { slug } })
/** The newest run with these filters. */
async function lastRun(filters: string): Promise<string> {
  const { output } = await gatewright(`runs ${filters} --mode apply --limit 1`)
  return /^[-\da-f]{36}/.exec(output)?.[0] ?? expect.fail(output)
}

const wiki = (name: string) => entries(anApplication('wiki', { name, meta_launch_url: '!Context wiki' }))
let monday = ''

/** An admin changes the wiki past its repository. */
async function hotfix(attrs: object): Promise<void> {
  const cwd = freshFolder()
  write(cwd, 'gatewright.yaml', { environments: { prod: { url } } })
  write(cwd, 'hotfix.yaml', entries(anApplication('wiki', attrs)))
  await exited(0, gatewright('apply hotfix.yaml --owner docs', { cwd, token: adminToken }), '1 changed')
}

test('Monday: all is planned, and that plan is applied', async () => {
  write(repository, 'teams/docs/wiki.yaml', wiki('Wiki'))
  write(repository, 'shared/staff.yaml', entries({ ...aGroup('staff'), retain: true }, aGroup('writers')))
  write(repository, 'teams/books/ledger.yaml', {
    app: { slug: 'ledger', name: 'Ledger' },
    provider_model: 'service_providers_radius.radiusprovider',
    provider: {
      name: 'ledger',
      client_networks: '10.0.0.0/8',
      authentication_flow: 'default-authentication',
      authorization_flow: 'default-authorization-implicit',
      invalidation_flow: 'default-provider-invalidation',
    },
  })
  for (const [file, entry] of Object.entries(leaving)) write(repository, file, entries(entry))
  await plan(`${leave + 5} to add, 0 to change, 0 to delete\n`)
  expect(await standing()).toBe(0)
  await apply(`${leave + 5} added, 0 changed, 0 deleted, 0 unchanged\n`)
  monday = await lastRun('--stack corp/identity')
  await exited(0, gatewright('stack show'), /^corp\/identity: 14 objects, of books, docs, doors$/m)
  write(ofSales, 'groups.yaml', entries(aGroup('sales')))
  await exited(0, gatewright('apply', { cwd: ofSales }), '1 added')
})

test('Tuesday: a plain apply leaves what left the files, and says so; the plan that lists it deletes it', async () => {
  write(repository, 'teams/docs/wiki.yaml', wiki('Handbook'))
  for (const file of Object.keys(leaving)) rmSync(join(repository, file))
  const left = await exited(0, gatewright('apply'), /^0 added, 1 changed, 0 deleted, 4 unchanged$/m)
  for (const object of ['flow "visitors"', 'user "door"', 'role "reception"', 'provider scim "visitors to SCIM"'])
    expect(left.output).toContain(`${object} is left over`)
  expect(await standing()).toBe(leave)
  await exited(0, gatewright('stack show'), /service_core\.user "door" left over since 20/)
  const { output } = await plan(`0 to add, 0 to change, ${leave} to delete\nleft over\n`)
  for (const { model } of Object.values(leaving) as { model: string }[]) expect(output).toContain(`\n- ${model} "`)
  await apply(`0 added, 0 changed, ${leave} deleted, 5 unchanged\n`)
  expect(await standing()).toBe(0)
})

test('Wednesday: a hotfix voids a waiting plan where a file names the field, and not elsewhere', async () => {
  write(repository, 'teams/docs/wiki.yaml', wiki('Wiki of all'))
  rmSync(join(repository, 'teams/books/ledger.yaml'))
  await plan('0 to add, 1 to change, 2 to delete\n')
  await hotfix({ meta_description: 'Read only on Sunday' })
  write(ofSales, 'groups.yaml', entries(aGroup('sales'), aGroup('sales abroad')))
  await exited(0, gatewright('apply', { cwd: ofSales }), '1 added')
  await apply('0 added, 1 changed, 2 deleted, 2 unchanged\n')
  expect(await application('wiki')).toMatchObject({ name: 'Wiki of all', metaDescription: 'Read only on Sunday' })

  write(repository, 'teams/docs/wiki.yaml', wiki('Wiki of everyone'))
  await plan('0 to add, 1 to change, 0 to delete\n')
  await hotfix({ name: 'Wiki (closed)' })
  const id = await lastRun('--changed application:wiki')
  const refused = await exited(1, gatewright(`apply --plan-file ${plans}`), '(412)')
  expect(refused.output).toContain(`application "wiki" changed after the plan: name by run ${id} of admin`)
  write(repository, 'teams/docs/wiki.yaml', wiki('Wiki of all'))
})

test('Wednesday: what another stack has is a conflict that names it', async () => {
  write(repository, 'shared/sales.yaml', entries(aGroup('sales')))
  const refused = await exited(1, gatewright('apply'), '(409)')
  expect(refused.output).toContain(
    'group "sales" belongs to stack "corp/sales", and the request is of stack "corp/identity"',
  )
  rmSync(join(repository, 'shared/sales.yaml'))
})

test('Thursday: the last run is taken back to the recorded state of what files name; the rest stays', async () => {
  const shown = await exited(2, gatewright('rollback --plan'), '2 to add, 1 to change, 0 to delete\n')
  expect(await application('ledger')).toBeNull()
  expect(shown.output).toContain('application "wiki": meta_description')
  const unread = await exited(2, gatewright('rollback'), 'Nothing is applied without --yes.\n')
  expect(unread.output).toContain(shown.output)
  await exited(0, gatewright('rollback --yes'), '2 added, 1 changed, 0 deleted, 2 unchanged\n')
  expect(await application('wiki')).toMatchObject({ name: 'Handbook', metaDescription: 'Read only on Sunday' })
  expect(await application('ledger')).not.toBeNull()
  expect(await standing()).toBe(0)
  await exited(0, gatewright(`rollback --to ${monday} --yes`), `${leave} added, 1 changed, 0 deleted, 4 unchanged\n`)
  expect(await application('wiki')).toMatchObject({ name: 'Wiki' })
  expect(await standing()).toBe(leave)
  await exited(0, gatewright('stack show'), /^corp\/identity: 14 objects, of books, docs, doors$/m)
  await exited(0, gatewright('stack show', { cwd: ofSales }), /^corp\/sales: 2 objects$/m)
})

test('Friday: retain and forget let objects stay without the stack', async () => {
  await exited(0, gatewright('stack forget group writers'), 'stays without stack corp/identity')
  rmSync(join(repository, 'shared/staff.yaml'))
  await plan('group "staff" would stay without stack "corp/identity": its entry had retain')
  await apply('0 added')
  await exited(0, gatewright('stack show'), /^corp\/identity: 1 object, of docs$/m)
  expect(await on.db.group.count({ where: { name: { in: ['staff', 'writers'] } } })).toBe(2)
})
