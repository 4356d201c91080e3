import fc from 'fast-check'
import { expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { permissionNames } from '../../src/models/registry.ts'
import { permissionsOf, rightsOf, toReadSecrets } from '../../src/permissions.ts'
import { bench } from '../apply/engine.ts'
import { rows, sql } from '../support/sql.ts'

/** What a role gives is said twice: by the function of the database, and by the code for tokens and policies. */

const { db, engine } = await bench()

/** Names that there are, and others that differ from them a little. */
const permission = fc.oneof(
  fc.constantFrom(...permissionNames(engine.registry)),
  fc
    .array(
      fc.constantFrom(
        ...['view', 'add', 'change', 'delete', 'rename', 'read', '_', 'application', 'provider', 'certificatekeypair'],
        ...['_secrets', 'user', 'x', '@', '\n'],
      ),
      {
        minLength: 1,
        maxLength: 5,
      },
    )
    .map((parts) => parts.join('')),
)
const owner = fc.oneof(
  fc.constantFrom('team-one', 'team-two', 'a@b', 'x_application', '%', "'", '"', '{}', ' '),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter((text) => !text.includes('\0')),
)
const role = fc.record({
  permissions: fc.array(permission, { maxLength: 8 }),
  owners: fc.array(owner, { maxLength: 4 }),
})

test('the function, the column of roles and the code give the same rights', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(role, { minLength: 1, maxLength: 40 }), async (roles) => {
      const sent = roles.map((each) => ({ ...each, pk: uuid7() }))
      const found = await rows<{ pk: string; stored: string[]; computed: string[] }>(
        db,
        sql`INSERT INTO roles (pk, name, permissions, owners) SELECT pk, pk::text, permissions, owners
          FROM jsonb_to_recordset(${JSON.stringify(sent)}::jsonb) AS r(pk uuid, permissions text[], owners text[])
          RETURNING pk, rights AS stored, role_rights(permissions, owners) AS computed`,
      )
      const byPk = new Map(found.map((each) => [each.pk, each]))
      for (const { pk, permissions, owners } of sent) {
        const rights = rightsOf(permissions, owners).sort()
        const { stored, computed } = byPk.get(pk) ?? expect.fail('no role')
        expect([stored.sort(), computed.sort()], JSON.stringify({ permissions, owners })).toEqual([rights, rights])
      }
    }),
    { numRuns: 25 },
  )
})

test('every permission of a model with owners is bound, and no other', async () => {
  const names = permissionNames(engine.registry)
  const bound = names.filter((name) => rightsOf([name], ['o']).includes(`${name}@o`))
  const labelled = engine.registry.models
    .filter(({ isLabelled }) => isLabelled === true)
    .map(({ resource }) => resource)
  expect(labelled.length).toBeGreaterThan(9)
  const expected = labelled.flatMap((resource) => [
    ...permissionsOf(resource),
    ...(resource === 'application' ? [] : [toReadSecrets(resource)]),
  ])
  expect(bound).toEqual(expected.sort())
})
