import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { adminToken, applyPath, exited, freshFolder, type Installation, installation, run } from '../../support/kit.ts'
import { installCli, installNodes, type Nodes } from '../../support/packed-cli.ts'
import {
  applications,
  claims,
  fileOf,
  makeRepository,
  objects,
  type Repository,
  secrets,
  sharedFile,
  slugOf,
  staff,
} from './make.ts'

/**
 * A repository of three hundred applications in forty files of twenty teams, from its first plan to an empty second
 * installation, with the command line program as npm installs it, on the oldest Node that it takes.
 */

let program: string
let nodes: Nodes
beforeAll(async () => {
  program = await installCli(freshFolder())
  nodes = await installNodes()
}, 300_000)

type Outcome = { readonly code: number | null; readonly output: string }
type There = {
  readonly on: Installation
  gatewright(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>
}

async function there(major: string): Promise<There> {
  const on = await installation()
  const address = await on.app.listen({ port: 0, host: '127.0.0.1' })
  return {
    on,
    gatewright: async (args, env = {}) => {
      const running = run(program, {
        args: [...args],
        cwd: freshFolder(),
        node: nodes[major] ?? '',
        env: { GATEWRIGHT_URL: address, GATEWRIGHT_TOKEN: adminToken, ...secrets, ...env },
      })
      const { code } = await running.exited
      return { code, output: running.output() }
    },
  }
}

describe('on Node 18', () => {
  let here: There
  let repository: Repository
  let plans: string
  let summary: string
  beforeAll(async () => {
    here = await there('18')
    repository = makeRepository(freshFolder())
    plans = join(freshFolder(), 'plans.json')
    summary = join(freshFolder(), 'summary.md')
  })

  const gatewright = (...args: string[]) => here.gatewright(args)
  const plan = () => gatewright('plan', repository.folder, '--out', plans, '--summary', summary)
  const applyPlan = () => gatewright('apply', repository.folder, '--plan-file', plans)
  const application = (slug: string) => here.on.db.application.findUnique({ where: { slug } })

  test('the first plan says how much it adds, and adds nothing', async () => {
    const before = await contents(here)
    const { code, output } = await plan()
    expect(code, output).toBe(2)
    expect(output).toContain(`${objects} to add, 0 to change, 0 to delete\n`)
    expect(JSON.parse(readFileSync(plans, 'utf8')).plans).toHaveLength(1)
    expect(await contents(here)).toEqual(before)
    const text = readFileSync(summary, 'utf8')
    expect(text.length).toBeLessThanOrEqual(60_000)
    expect(text).toContain(`${objects} to add`)
  })

  test('the apply does exactly that, by one run; again it is unchanged', async () => {
    const { code, output } = await applyPlan()
    expect(code, output).toBe(0)
    expect(await here.on.db.application.count({ where: { slug: { startsWith: 't' } } })).toBe(applications)
    const owners = await here.on.db.application.groupBy({ by: ['owner'], where: { slug: { startsWith: 't' } } })
    expect(owners).toHaveLength(20)
    expect(await here.on.db.run.count({ where: { mode: 'apply', submitterPk: { not: null } } })).toBe(1)
    await exited(
      0,
      gatewright('plan', repository.folder),
      new RegExp(`^0 to add, 0 to change, 0 to delete\n${objects} unchanged in \\d+ files\n$`),
    )
    expect(await applyPlan()).toMatchObject({ code: 0, output: expect.stringContaining(`${objects} unchanged`) })
  })

  test('five changes are planned by names; one that changed in between is said, and nothing is applied', async () => {
    repository.edit(sharedFile, '"cost_centre":1', '"cost_centre":2')
    repository.edit(fileOf(1, 1), `"name":"Application ${slugOf(1, 1)}"`, '"name":"Renamed for people"')
    repository.edit(fileOf(2, 2), '"group":"Team 02"', '"group":"Team two"')
    repository.edit(fileOf(3, 1), 'default-authorization-explicit', 'default-authorization-implicit')
    repository.edit(fileOf(20, 2), `"name":"Application ${slugOf(20, 15)}"`, '"name":"The last one"')
    const { code, output } = await plan()
    expect(code, output).toBe(2)
    expect(output).toContain(`\n${objects - 5} unchanged in `)
    expect(output).toContain(
      '- authorization_flow: "default-authorization-explicit"\n  + authorization_flow: "default-authorization-implicit"\n',
    )
    expect(output.split('\n').length).toBeLessThan(20)
    expect(readFileSync(summary, 'utf8')).toContain('5 to change')
    const slug = slugOf(20, 15)
    await here.on.admin.put(
      '/api/v3/blueprints/',
      {
        version: 1,
        entries: [{ model: 'service_core.application', identifiers: { slug }, attrs: { group: 'By hand' } }],
      },
      { headers: { 'gatewright-owner': 'team-20' } },
    )
    const before = await contents(here)
    const refused = await exited(1, applyPlan())
    expect(refused.output).toMatch(
      new RegExp(`application "${slug}" changed after the plan: group by run \\S+ of admin`),
    )
    expect(await contents(here)).toEqual(before)
    await plan()
    expect(await applyPlan()).toMatchObject({ code: 0 })
    expect(await application(slug)).toMatchObject({ name: 'The last one' })
  })

  test('a removed application is deleted by the reviewed plan; the summary names it first', async () => {
    const slug = slugOf(4, 1)
    const text = repository.read(fileOf(4, 1))
    const kept = text.split('\n').filter((line) => !line.includes(`"${slug}"`))
    repository.write(fileOf(4, 1), kept.join('\n'))
    await exited(0, gatewright('apply', repository.folder), '--allow-deletes 2')
    const { output } = await plan()
    expect(output).toContain(`\n${objects - 2} unchanged in `)
    const written = readFileSync(summary, 'utf8')
    expect(written.indexOf(slug)).toBeLessThan(written.indexOf('<details>'))
    expect(await applyPlan()).toMatchObject({ code: 0 })
    expect(await application(slug)).toBeNull()
  })

  test('a rename keeps the object', async () => {
    const [from, to] = [slugOf(5, 1), 'wiki-of-team-5']
    const before = await application(from)
    repository.edit(
      fileOf(5, 1),
      `"model":"service_core.application","identifiers":{"slug":"${from}"}`,
      `"model":"service_core.application","was":"${from}","identifiers":{"slug":"${to}"}`,
    )
    await plan()
    expect(await applyPlan()).toMatchObject({ code: 0 })
    expect((await application(to))?.pk).toBe(before?.pk)
  })

  test('what was changed by hand is found by diff --all, and put back by --reset', async () => {
    const slug = slugOf(6, 2)
    await here.on.db.application.update({ where: { slug }, data: { metaPublisher: 'By hand' } })
    const { metaPublisher } = await here.on.db.application.findUniqueOrThrow({ where: { slug: slugOf(6, 2) } })
    expect(metaPublisher).toBe('By hand')
    const differs = await exited(2, gatewright('diff', repository.folder, '--all'))
    expect(differs.output).toContain('By hand')
    expect(await gatewright('apply', repository.folder, '--reset')).toMatchObject({ code: 0 })
    expect((await application(slug))?.metaPublisher).not.toBe('By hand')
  })

  test('a rotated secret stays, because the file sets it for a new object alone', async () => {
    const provider = await here.on.db.provider.findFirstOrThrow({ where: { kind: 'oauth2', owner: 'team-07' } })
    const rotation = {
      app: { slug: provider.name },
      provider_model: 'service_providers_oauth2.oauth2provider',
      provider: { name: provider.name, client_secret: { generate: true } },
    }
    const headers = { 'gatewright-owner': 'team-07' }
    expect((await here.on.admin.put(applyPath, rotation, { headers })).json).toMatchObject({ applied: true })
    const after = await here.on.db.provider.findUniqueOrThrow({ where: { pk: provider.pk } })
    expect(after.secrets).not.toEqual(provider.secrets)
    expect(await gatewright('apply', repository.folder)).toMatchObject({ code: 0 })
    expect((await here.on.db.provider.findUniqueOrThrow({ where: { pk: provider.pk } })).secrets).toEqual(after.secrets)
  })

  test('an error has its place in its file, and nothing is applied', async () => {
    const file = fileOf(8, 2)
    const text = repository.read(file)
    const at = text.split('\n').findIndex((line) => line.includes('service_core.application')) + 1
    repository.edit(file, '"group":"Team 08"', '"grup":"Team 08"')
    const { code, output } = await gatewright('apply', repository.folder)
    expect(code).toBe(1)
    expect(output).toMatch(
      new RegExp(`${file}:${at}:\\d+ entries\\.\\d+\\.grup: Unknown field\\. Did you mean group\\?`),
    )
    repository.write(file, text)
  })

  test('what was applied before is applied again by its run', async () => {
    const applied = await gatewright('apply', repository.folder, '--json')
    const [, id = ''] = /runs\/([-0-9a-f]{36})\//.exec(applied.output) ?? []
    const before = await contents(here)
    repository.edit(fileOf(9, 1), '"group":"Team 09"', '"group":"Wrong"')
    repository.edit(sharedFile, '"cost_centre":2', '"cost_centre":3')
    expect(await gatewright('apply', repository.folder)).toMatchObject({ code: 0 })
    expect(await contents(here)).not.toEqual(before)
    await exited(0, gatewright('rollback', '--to', id, '--yes'))
    expect(await contents(here)).toEqual(before)
  })

  test('its export makes the same in an empty installation, which exports the same text', async () => {
    const other = await there('18')
    const exported = await folderOf(here)
    const env = variablesOf(exported)
    await exited(2, other.gatewright(['plan', exported], env))
    await exited(0, other.gatewright(['apply', exported], env))
    expect(textsBelow(await folderOf(other))).toEqual(textsBelow(exported))
    expect(await other.gatewright(['plan', exported], env)).toMatchObject({ code: 0 })
  })
})

describe.each(['22', '26'])('on Node %s', (major) => {
  test('the folder is planned, applied by that plan, and unchanged', async () => {
    const on = await there(major)
    const { folder } = makeRepository(freshFolder())
    const plans = join(freshFolder(), 'plans.json')
    expect(await on.gatewright(['plan', folder, '--out', plans])).toMatchObject({ code: 2 })
    expect(await on.gatewright(['apply', folder, '--plan-file', plans])).toMatchObject({ code: 0 })
    expect(await on.gatewright(['plan', folder])).toMatchObject({ code: 0 })
    const shared = { name: { in: [staff, claims] } }
    expect(await on.on.db.group.count({ where: shared })).toBe(1)
  })
})

/** What there is, without when it was written. */
async function contents({ on: { db } }: There): Promise<unknown> {
  const select = (rows: Promise<object[]>) => rows.then((all) => all.map((row) => ({ ...row, updatedAt: null })))
  return Promise.all([
    select(db.application.findMany({ orderBy: { pk: 'asc' } })),
    select(db.provider.findMany({ orderBy: { pk: 'asc' } })),
    select(db.group.findMany({ orderBy: { pk: 'asc' } })),
    select(db.propertyMapping.findMany({ orderBy: { pk: 'asc' } })),
    select(db.role.findMany({ orderBy: { pk: 'asc' } })),
  ])
}

async function folderOf({ gatewright }: There): Promise<string> {
  const folder = freshFolder()
  const { code, output } = await gatewright(['export', '--out', `${folder}/`])
  expect(code, output).toBe(0)
  return folder
}

const textsBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => [file, readFileSync(join(folder, file), 'utf8')] as const)

/** A value for each variable that the files name at their heads. */
const variablesOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    textsBelow(folder).flatMap(([, text]) =>
      [...text.matchAll(/^# {3}(GW_\w+) {2}(\w+) of.*$/gm)].map(([line, name = '']) => [
        name,
        line.includes('JSON') ? '{"type":"service_account"}' : `a value for ${name}`,
      ]),
    ),
  )
