import { expect, test } from 'vitest'
import { check } from '../../src/apply/check.ts'
import { type EngineReader, reader } from '../../src/db/engine-tx.ts'
import type { Entry } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { bench, oauth2, shipped } from '../apply/engine.ts'

/** Names and keys cost no statement of their own. */

const there = await bench()

const statementsFor = async (attrs: Record<string, unknown>) => {
  let sent = 0
  const counting: EngineReader = {
    attempt: (row, statement, limits) => {
      sent += 1
      return reader(there.db).attempt(row, statement, limits)
    },
    query: (row, statement) => {
      sent += 1
      return reader(there.db).query(row, statement)
    },
  }
  const entry = (name: string): Entry => ({
    ...{ model: '', state: 'present', identifiers: {}, attrs: {} },
    ...oauth2(`statements ${name}`, attrs),
  })
  const plan = compile(
    { version: 1, metadata: { name: 'statements' }, entries: [entry('a'), entry('b')] },
    there.engine.registry,
  )
  await check(counting, there.engine, plan, system, unconditional).catch(() => {})
  return sent
}

test.each([
  ['one for keys', { property_mappings: shipped.mappings }, 1],
  [
    'the same one for names',
    { authorization_flow: 'default-authorization-explicit', signing_key: 'Gatewright self-signed' },
    1,
  ],
  [
    'one more for each name that is unknown',
    { authorization_flow: 'x', signing_key: 'y', property_mappings: ['z'] },
    4,
  ],
])('%s', async (_, attrs, expected) => {
  expect(await statementsFor(attrs)).toBe(expected)
})
