import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { freePort, freshFolder, run } from '../support/kit.ts'
import { type Document, schemaPath } from '../support/openapi.ts'

/** The checklists of docs/architecture.md, followed in a copy of the tree: no other file is touched. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const copy = join(freshFolder(), 'copy')
const execute = promisify(execFile)

function write(file: string, text: string): void {
  mkdirSync(join(copy, file, '..'), { recursive: true })
  writeFileSync(join(copy, file), text)
}

/** @param edits each text, and what stands in its place */
function edit(file: string, ...edits: readonly (readonly [before: string, after: string])[]): void {
  let text = readFileSync(join(copy, file), 'utf8')
  for (const [before, after] of edits) {
    expect(text, file).toContain(before)
    text = text.replace(before, after)
  }
  writeFileSync(join(copy, file), text)
}

/** One file, and its example. */
function addKind(): void {
  write(
    'src/models/providers/probe.ts',
    `import { z } from 'zod'
import { filledLine, int32, secret } from '../fields.ts'
import { defineProvider } from '../provider.ts'

export default defineProvider({
  kind: 'probe',
  verboseName: 'Probe Provider',
  flows: 'none',
  settings: z.object({ port: int32(1).default(8_080), password: secret(filledLine(255)) }),
})
`,
  )
  write('examples/probe.json', JSON.stringify(probe))
}

const probe = {
  app: { name: 'Probe', slug: 'probe' },
  provider_model: 'service_providers_probe.probeprovider',
  provider: { name: 'probe', password: 'example-only' },
}

/** Three files, and its view. */
function addField(): void {
  edit(
    'src/models/group.ts',
    ['jsonObject,', 'jsonObject, line,'],
    ['attrs: z.object({', "attrs: z.object({\n    cost_center: line(100).meta({ examples: ['4711'] }).default(''),"],
  )
  edit('prisma/schema.prisma', ['model Group {', 'model Group {\n  costCenter String @default("") @map("cost_center")'])
  write(
    'prisma/migrations/20991231000000_cost_centers/migration.sql',
    `ALTER TABLE "groups" ADD COLUMN "cost_center" TEXT NOT NULL DEFAULT '';\n`,
  )
  edit(
    'src/views/group-summary.ts',
    ['.object({', ".object({\n    cost_center: z.string().meta({ examples: ['4711'] }),"],
    ['export const groupSummarySelect = {', 'export const groupSummarySelect = {\n  costCenter: true,'],
    ['GroupSummary => ({', 'GroupSummary => ({\n  cost_center: row.costCenter,'],
  )
}

/** Three files, and its line in the table of contents. */
function addList(): void {
  write(
    'src/views/queue-pause.ts',
    `import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { inOrder, type View } from './view.ts'

const schema = z.object({ queue: z.string(), paused_by: z.string() }).meta({ id: 'QueuePause' })

async function* read(tx: Tx, keys: readonly string[]) {
  const rows = await tx.queuePause.findMany({ where: { queue: { in: [...keys] } } })
  yield inOrder(keys, rows, ({ queue }) => queue).map(({ queue, pausedBy }) => ({ queue, paused_by: pausedBy }))
}

export const queuePauseView = { model: 'QueuePause', schema, read } satisfies View<'QueuePause'>
`,
  )
  write(
    'src/api/queue-pauses.ts',
    `import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { list } from '../lists/list.ts'
import { queueName } from '../lists/tables.ts'
import { queuePauseView } from '../views/queue-pause.ts'

export const queuePauseRoutes = (app: Api, db: Db): void =>
  list(app, db, {
    path: '/core/queue_pauses/',
    summary: 'List pauses of queues',
    permission: 'view_queue',
    view: queuePauseView,
    count: 'rows',
    search: queueName,
    order: { queue: 'queue' },
    defaultOrder: 'queue',
    filters: { queue: filter.equals('queue') },
  })
`,
  )
  edit(
    'src/lists/tables.ts',
    ['const tables = {', "const tables = {\n  QueuePause: { name: 'queue_pauses', unique: ['queue'] },"],
    [
      'export const groupName',
      "export const queueName = 'lower(queue_pauses.queue) LIKE {pattern}'\nexport const groupName",
    ],
  )
  edit(
    'src/app.ts',
    ['import { stackRoutes }', "import { queuePauseRoutes } from './api/queue-pauses.ts'\nimport { stackRoutes }"],
    ['      stackRoutes(', '      queuePauseRoutes(api, db)\n      stackRoutes('],
  )
}

const copied = ['blueprints', 'examples', 'prisma', 'scripts', 'src', 'workers', 'package.json', 'package-lock.json']

test('a kind, a field and a list are added by the checklists of the architecture', { timeout: 180_000 }, async () => {
  for (const each of [...copied, 'prisma.config.ts', 'tsconfig.json'])
    cpSync(join(root, each), join(copy, each), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  addKind()
  addField()
  addList()
  // Generates the client of the changed schema.
  await execute(process.execPath, [join(copy, 'scripts/install.mjs')])
  write('tsconfig.copy.json', JSON.stringify({ extends: './tsconfig.json', include: ['src', 'workers'] }))
  const compile = [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(copy, 'tsconfig.copy.json')]
  const { stdout } = await execute(process.execPath, compile).catch((error: unknown) => Object(error))
  expect(stdout).toBe('')

  const [dataDir, port] = [freshFolder(), await freePort()]
  const env = { DATA_DIR: join(dataDir, 'data'), PORT: String(port), LOG_LEVEL: 'warn' }
  const server = run(join(copy, 'src/standalone/main.ts'), { env, cwd: copy })
  try {
    await server.line(/Ctrl-C stops everything/, { withinMs: 60_000 })
    await use(`http://127.0.0.1:${port}`, readFileSync(join(dataDir, 'data/admin-token'), 'utf8').trim())
  } finally {
    await server.stop()
  }
})

async function use(url: string, token: string): Promise<void> {
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const sent = body === undefined ? { headers: { authorization: headers.authorization } } : { headers }
    const answer = await fetch(`${url}/api/v3${path}`, { method, ...sent, ...(body && { body: JSON.stringify(body) }) })
    return { status: answer.status, json: await answer.json() }
  }
  const document = (await (await fetch(`${url}${schemaPath}`)).json()) as Document
  const { schemas } = document.components
  const put = '/core/transactional/applications/'

  // The kind is described with its permission and its example, is checked, applies, and is the deployers' too.
  expect(document.paths).toHaveProperty(['/api/v3/providers/probe/'])
  expect(schemas.ProbeProvider).toMatchObject({ properties: { password: { writeOnly: true } } })
  const described = document.paths[`/api/v3${put}`]?.put
  expect(JSON.stringify(described?.['x-also-needs'])).toContain('"add_probeprovider"')
  expect(described?.requestBody?.content['application/json']?.examples?.probe?.value).toEqual(probe)
  const wrong = { ...probe, provider: { ...probe.provider, port: 0 } }
  expect(await ask('PUT', put, wrong)).toMatchObject({
    status: 400,
    json: { provider: { port: ['Must be at least 1.'] } },
  })
  expect(await ask('PUT', put, probe)).toMatchObject({ status: 200, json: { applied: true } })
  expect(await ask('GET', '/providers/probe/probe/')).toMatchObject({ status: 200, json: { port: 8_080 } })
  const { json: role } = await ask('GET', '/rbac/roles/Application%20deployer/')
  expect(Object(role).permissions).toEqual(expect.arrayContaining(['add_probeprovider', 'change_probeprovider']))

  // The field is described with its example, written and shown.
  expect(schemas.CreateGroup).toMatchObject({ examples: [{ cost_center: '4711' }] })
  expect(schemas.Group).toMatchObject({ properties: { cost_center: { type: 'string' } } })
  const group = { name: 'engineering', cost_center: '42' }
  expect(await ask('POST', '/core/groups/', group)).toMatchObject({ status: 201, json: group })
  expect(await ask('GET', '/core/groups/?name=engineering')).toMatchObject({ json: { results: [group] } })

  // The list is described, and answers.
  expect(schemas).toHaveProperty('PaginatedQueuePauseList')
  expect(await ask('GET', '/core/queue_pauses/?search=a')).toMatchObject({ status: 200, json: { results: [] } })
}
