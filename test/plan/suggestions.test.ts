import { setTimeout } from 'node:timers/promises'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { check } from '../../src/apply/check.ts'
import { transaction } from '../../src/db/client.ts'
import { type EngineReader, reader } from '../../src/db/engine-tx.ts'
import { bePatient, patience, quickMs } from '../../src/db/in-time.ts'
import { execute as executeText, query, type Statement } from '../../src/db/raw.ts'
import type { Entry } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { bench } from '../apply/engine.ts'
import { execute, sql } from '../support/sql.ts'

/** What the errors of unknown names suggest, when there are many names. */

const there = await bench()
const { db } = there
beforeAll(async () => {
  await execute(
    db,
    sql`INSERT INTO users (uuid, username)
      SELECT gen_random_uuid(), 'person.' || md5(n::text) FROM generate_series(1, 12000) n`,
  )
  await execute(db, sql`INSERT INTO users (uuid, username) VALUES (gen_random_uuid(), 'margarethe.oberhuber')`)
  await execute(db, sql`INSERT INTO groups (pk, name) VALUES (gen_random_uuid(), 'grafana')`)
  await execute(db, sql`ANALYZE users, groups`)
})

const group = (attrs: Record<string, unknown>): Entry => ({
  ...{ model: 'service_core.group', state: 'present', identifiers: { name: 'suggestions' }, attrs },
})

/** The messages of all errors. */
async function errorsOf(attrs: Record<string, unknown>, by: EngineReader = reader(db)): Promise<string[]> {
  const plan = compile(
    { version: 1, metadata: { name: 'suggestions' }, entries: [group(attrs)] },
    there.engine.registry,
  )
  const error: { code?: string; fields?: object } = await check(by, there.engine, plan, system, unconditional).then(
    () => expect.fail('it is accepted'),
    (error: object) => error,
  )
  expect(error.code).toBe('invalid')
  return JSON.stringify(error.fields).match(/No (?:user|group) is called \\".*?(?:\?|\.)(?=")/g) ?? []
}

const ten = Array.from({ length: 10 }, (_, index) => `nobody-${index}`)

test('names of a large table must be more similar than those of a small one', async () => {
  const [error] = await errorsOf({ users: ['margarete.oberhuber'] })
  expect(error).toMatch(/Did you mean \\"margarethe\.oberhuber\\"\?/)
  // Half of their letters in threes are the same.
  expect((await errorsOf({ parent: 'grafna' }))[0]).toMatch(/Did you mean \\"grafana\\"\?/)
  const thresholds: string[] = []
  const shown = z.object({ threshold: z.string() })
  const asking: EngineReader = {
    ...reader(db),
    attempt: async (_, __, { settings }) => {
      const text = `SELECT current_setting('pg_trgm.similarity_threshold') AS threshold`
      const rows = await transaction(db, async (tx) => {
        await executeText(tx, settings)
        return query(tx, shown, { text, values: [] } satisfies Statement)
      })
      thresholds.push(...rows.map(({ threshold }) => threshold))
      return []
    },
  }
  await errorsOf({ users: ['margarete.oberhuber'], parent: 'grafna' }, asking)
  expect(thresholds.sort()).toEqual(['0.3', '0.6'])
})

test('all suggestions of a document have one time-out, and its errors do without them afterwards', async () => {
  const usual = patience()
  bePatient(quickMs)
  onTestFinished(() => bePatient(usual))
  let asked = 0
  const slow: EngineReader = {
    ...reader(db),
    attempt: async (_, __, { withinMs }) => {
      asked += 1
      await setTimeout(withinMs)
      return null
    },
  }
  const errors = await errorsOf({ users: ten }, slow)
  expect(errors).toHaveLength(10)
  expect(errors.join()).not.toMatch(/Did you mean/)
  expect(asked).toBe(1)
})

test('the worker refuses with the same errors', async () => {
  const attrs = { users: ['margarete.oberhuber', ...ten] }
  const { reason, logs } = await there.refusal([group(attrs)])
  expect(reason).toBe('invalid')
  const sentences = (await errorsOf(attrs)).map((text) => text.replaceAll('\\"', '"'))
  expect(sentences).toHaveLength(11)
  const text = logs.join('\n')
  for (const sentence of sentences) expect(text).toContain(sentence)
})
