import { expect, test } from 'vitest'
import { type EngineReader, reader } from '../../src/db/engine-tx.ts'
import type { Entry } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { resolveNames } from '../../src/plan/names.ts'
import { bench, oauth2, shipped } from '../apply/engine.ts'

/** Names cost one statement for the whole document; keys cost none. */

const there = await bench()

const statementsFor = async (attrs: Record<string, unknown>) => {
  let sent = 0
  const counting: EngineReader = {
    query: (row, statement) => {
      sent += 1
      return reader(there.db).query(row, statement)
    },
  }
  const entry: Entry = { model: '', state: 'present', identifiers: {}, attrs: {}, ...oauth2('statements', attrs) }
  const { steps } = compile(
    { version: 1, metadata: { name: 'statements' }, entries: [entry, entry] },
    there.engine.registry,
  )
  await resolveNames(counting, there.engine.registry, steps, system)
  return sent
}

test.each([
  ['none for keys', { property_mappings: shipped.mappings }, 0],
  [
    'one for all names',
    { authorization_flow: 'default-authorization-explicit', signing_key: 'Gatewright self-signed' },
    1,
  ],
  ['two when names are unknown', { authorization_flow: 'x', signing_key: 'y', property_mappings: ['z'] }, 2],
])('%s', async (_, attrs, expected) => {
  expect(await statementsFor(attrs)).toBe(expected)
})
