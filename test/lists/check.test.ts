import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Db } from '../../src/db/client.ts'
import type { ZodTypeProvider } from '../../src/http/api.ts'
import { validatorCompiler } from '../../src/http/zod.ts'
import { list } from '../../src/lists/list.ts'
import type { ListSpec } from '../../src/lists/listed.ts'
import { runTitle, userText } from '../../src/lists/tables.ts'
import { notAsked } from '../../src/runs/why.ts'
import { runView } from '../../src/views/run.ts'
import { userView } from '../../src/views/user.ts'
import { atEnd, execute, freshDatabase, sql } from '../support/kit.ts'

const users: ListSpec<'User'> = {
  ...{ path: '/core/users/', summary: 'List users', permission: 'view_user', view: userView, search: userText },
  ...{ count: 'kept', order: { pk: 'pk' }, defaultOrder: 'pk', filters: {} },
}

const runs: ListSpec<'Run'> = {
  ...{ path: '/runs/', summary: 'List runs', permission: 'view_run', view: runView(notAsked), search: runTitle },
  ...{ count: 'kept', order: { id: 'id' }, defaultOrder: 'id', filters: {} },
}

async function start(declare: (app: Parameters<typeof list>[0], db: Db) => void, prepare = sql`SELECT 1`) {
  const { db } = await freshDatabase()
  await execute(db, prepare)
  const app = Fastify().withTypeProvider<ZodTypeProvider>()
  atEnd(() => app.close())
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(() => JSON.stringify)
  declare(app, db)
  await app.ready()
}

test('a list whose table keeps its count starts', async () => {
  await expect(start((app, db) => list(app, db, users))).resolves.toBeUndefined()
})

test('a list that would answer count 0, because its table keeps none, does not start', async () => {
  await expect(start((app, db) => list(app, db, runs))).rejects.toThrow(
    '/runs/ declares that its count is kept, but table runs lacks the triggers of keep_row_count()',
  )
  await expect(start((app, db) => list(app, db, { ...runs, count: 'rows' }))).resolves.toBeUndefined()
})

test.for([
  sql`DROP TRIGGER users_count_removed ON users`,
  sql`DROP TRIGGER users_count_emptied ON users`,
  sql`ALTER TABLE users DISABLE TRIGGER users_count_added`,
])('a list whose table counts some changes only does not start: $text', async (change) => {
  await expect(start((app, db) => list(app, db, users), change)).rejects.toThrow('table users lacks the triggers')
})

test('a list whose column has another name does not start', async () => {
  await expect(
    start((app, db) => list(app, db, users), sql`ALTER TABLE users RENAME COLUMN pk TO key`),
  ).rejects.toThrow('/core/users/ names the field pk, but table users has no column pk')
})

test('a list whose view has no name for the description of the API does not start', async () => {
  const view = { ...userView, schema: z.object({ pk: z.int() }) }
  await expect(start((app, db) => list(app, db, { ...users, view }))).rejects.toThrow(
    "/core/users/ lists User, but the schema of its view in src/views/ has no name for the API's description: end it with .meta({ id: 'User' }).",
  )
})

test('a list whose view has an example that does not fit its field does not start', async () => {
  const schema = userView.schema.extend({ pk: z.int().meta({ examples: ['ada'] }) }).meta({ id: 'WrongUser' })
  // Other files of this process describe the API by all schemas with a name.
  onTestFinished(() => void z.globalRegistry.remove(schema))
  await expect(start((app, db) => list(app, db, { ...users, view: { ...userView, schema } }))).rejects.toThrow(
    'The view of User in src/views/: the example "ada" of the field pk does not fit it',
  )
})
