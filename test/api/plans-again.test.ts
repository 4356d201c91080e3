import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { aGroup, aUser, type Entry, installation, named } from '../support/kit.ts'

/** A plan can always be applied, also of a document that names a row again which it creates. */

const on = await installation()
const { apply, plan, runOf } = on.admin

/** Such an entry may say something else of a row than an earlier one. */
const conditions: [true] = [true]

/** Plans a document and applies the plan. @returns what both reported */
async function planned(entries: readonly Entry[]) {
  const reviewed = await plan(entries)
  if (reviewed.etag === '') return { reviewed, applied: undefined }
  const applied = await apply(entries, { ifMatch: reviewed.etag })
  expect(applied, JSON.stringify(entries)).toMatchObject({ status: 200, json: { applied: true } })
  const { changes } = await runOf(reviewed)
  expect((await runOf(applied)).changes).toEqual(changes)
  return { reviewed, applied, changes }
}

test('a document that creates a provider and names it twice more is planned and applied', async () => {
  const name = `again-${randomUUID().slice(0, 8)}`
  const sent = (await named('oauth2', name)).provider
  const { name: _name, client_id: _id, client_secret: _secret, sub_mode: _mode, ...attrs } = sent
  const model = 'service_providers_oauth2.oauth2provider'
  const entries = [
    { model, id: 'made', identifiers: { name }, attrs },
    { model, identifiers: { name }, attrs: { ...attrs, client_id: `id-${name}`, sub_mode: 'user_email' } },
    { model, identifiers: { name }, attrs: { ...attrs, client_id: `id-${name}`, sub_mode: 'user_email' } },
  ]
  const { reviewed, changes } = await planned(entries)
  expect(changes).toMatchObject([
    { action: 'create', fields: { client_id: { from: null, to: { set_by_server: true } } } },
    { action: 'update', fields: { client_id: { from: { set_by_server: true }, to: `id-${name}` } } },
    { action: 'unchanged', fields: {} },
  ])
  expect(reviewed.logs.slice(1)).toEqual([
    expect.stringMatching(/would be updated: client_id set by the server -> "id-/),
    expect.stringMatching(/ unchanged$/),
  ])
})

test('a new user among the members of a group, which the document empties before', async () => {
  const name = `again-${randomUUID().slice(0, 8)}`
  const user = (username: string) => aUser(username)
  const group = aGroup(name)
  await apply([group, user(`${name}-old`)])
  const { changes } = await planned([
    { ...user(`${name}-new`), id: 'new', attrs: { groups: [name] } },
    { ...user(`${name}-old`), attrs: { groups: [name] } },
    { ...group, attrs: { users: [] } },
  ])
  expect(changes).toMatchObject([
    { fields: {} },
    { fields: { groups: { to: [name] } } },
    { fields: { groups: { to: [name] } } },
  ])
})

/** Few names, so that entries meet. */
const documents = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('group' as const),
      name: fc.constantFrom('one', 'two', 'three'),
      state: fc.constantFrom(...Array<string>(11).fill('present'), 'absent'),
      users: fc.option(fc.subarray(['ada', 'bob', 'cy']), { nil: undefined }),
      parent: fc.option(fc.constantFrom('one', 'two', 'three'), { nil: undefined }),
      is_superuser: fc.option(fc.boolean(), { nil: undefined }),
    }),
    fc.record({
      kind: fc.constant('user' as const),
      name: fc.constantFrom('ada', 'bob', 'cy'),
      state: fc.constantFrom(...Array<string>(11).fill('present'), 'absent'),
      groups: fc.option(fc.subarray(['one', 'two', 'three']), { nil: undefined }),
      email: fc.constantFrom(undefined, 'a@example.com', 'b@example.com'),
    }),
  ),
  { minLength: 2, maxLength: 7 },
)

test('random documents that name new rows again: each plan that is made is applied, and shows no temporary key', {
  timeout: 300_000,
}, async () => {
  const seen = { applied: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(documents, async (drawn) => {
      const world = randomUUID().slice(0, 6)
      const inWorld = (each: string) => `${each}-${world}`
      const entryOf = (each: string): Entry => {
        const [kind = '', name = ''] = each.split(' ')
        return kind === 'group' ? aGroup(inWorld(name)) : aUser(inWorld(name))
      }
      // The others are created by the document, which begins with them.
      const before = ['group one', 'group two', 'user ada', 'user bob']
      const first = (['group three', 'user cy'] as const).map(entryOf)
      expect(await apply(before.map(entryOf))).toMatchObject({ status: 200 })
      const entries = drawn.map((each): Entry => {
        if (each.kind === 'group') {
          const attrs = {
            ...(each.users && { users: each.users.map(inWorld) }),
            ...(each.parent !== undefined && { parent: inWorld(each.parent) }),
            ...(each.is_superuser !== undefined && { attributes: { was: each.is_superuser } }),
          }
          const identifiers = { name: inWorld(each.name) }
          return {
            model: 'service_core.group',
            state: each.state,
            identifiers,
            conditions,
            ...(each.state === 'present' && { attrs }),
          }
        }
        const attrs = {
          ...(each.groups && { groups: each.groups.map(inWorld) }),
          ...(each.email !== undefined && { email: each.email }),
        }
        const identifiers = { username: inWorld(each.name) }
        return {
          model: 'service_core.user',
          state: each.state,
          identifiers,
          conditions,
          ...(each.state === 'present' && { attrs }),
        }
      })
      const { reviewed, applied } = await planned([...first, ...entries])
      seen[applied === undefined ? 'refused' : 'applied'] += 1
      const shown = JSON.stringify([reviewed.json, reviewed.run && (await runOf(reviewed)).changes])
      expect(shown).not.toMatch(/[^\w]-\d{4,}/)
    }),
    { numRuns: Math.ceil(120 * inject('rounds')) },
  )
  expect(seen.applied).toBeGreaterThan(40 * inject('rounds'))
})
