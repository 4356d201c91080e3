import { describe, expect, test } from 'vitest'
import { answered, applied, installation } from '../support/kit.ts'

/** Tags that only the database can answer, and conditions, from the request to the rows. */

const on = await installation()

const put = (payload: string, query = '', headers = {}) =>
  on.admin.send({
    method: 'PUT',
    url: `/api/v3/blueprints/${query}`,
    headers: { 'content-type': 'application/yaml', ...headers },
    payload,
  })

const logsOf = (answer: { json: unknown }) => (answer.json as { logs: string[] }).logs

async function applyTwice(text: string): Promise<readonly string[]> {
  const first = await applied(put(text))
  const again = await applied(put(text))
  expect(logsOf(again).filter((line) => !/ unchanged$| left as it is$| skipped: /.test(line))).toEqual([])
  return logsOf(first)
}

test('one document with every tag is applied, and a second time changes nothing', async () => {
  await on.make.group({ name: 'kept' })
  const logs = await applyTwice(`# yaml-language-server: $schema=https://example.com/schema.json
version: 1
metadata:
  name: a team
  labels: { example.com/instantiate: "false" }
context:
  team: blue
  sites: { wiki: 8080, shop: 9090 }
  dry: false
entries:
  - model: service_core.group
    id: team
    state: created
    identifiers: { name: !Format ["team %s", !Context team] }
    attrs: &attrs
      attributes: !Enumerate [!Context sites, MAP, [!Index 0, { port: !Value 0 }]]
  - model: service_core.group
    id: below
    identifiers: { name: team blue below }
    attrs:
      <<: *attrs
      parent: !If [!Find [service_core.group, [name, no such group]], !Find [service_core.group, [name, kept]], !KeyOf team]
      is_superuser: !Condition [AND, !Context dry, true]
  - model: service_core.group
    conditions: [!Context dry]
    identifiers: { name: never }
    attrs: { no_such_field: 1 }
  - model: service_core.group
    conditions: [!Find [service_core.group, { name: no such group }]]
    identifiers: { name: not now }
  - model: service_core.group
    conditions: [true, !Condition [NOR, !Find [service_core.group, { name: no such group }]], !KeyOf below]
    identifiers: { name: !Format ["group %s", !Find [service_core.group, [name, kept]]] }
    attrs: { attributes: { of: [!KeyOf team, !AtIndex [[!KeyOf below], 0]] } }
`)
  expect(logs).toEqual([
    'entry 2 (group "never") skipped: its conditions are false',
    expect.stringContaining('group "team blue" created'),
    expect.stringContaining('group "team blue below" created'),
    'entry 3 (group "not now") skipped: its conditions are false',
    expect.stringMatching(/group "group [0-9a-f-]{36}" created/),
  ])
  const [team, below, last] = await Promise.all(
    ['team blue', 'team blue below'].map((name) => on.db.group.findFirstOrThrow({ where: { name } })),
  ).then(async (both) => [...both, await on.db.group.findFirstOrThrow({ where: { name: { startsWith: 'group ' } } })])
  expect(below).toMatchObject({
    parentPk: team?.pk,
    isSuperuser: false,
    attributes: { wiki: { port: 8080 }, shop: { port: 9090 } },
  })
  expect(last).toMatchObject({ attributes: { of: [team?.pk, below?.pk] } })
  expect(await on.db.group.count({ where: { name: { in: ['never', 'not now'] } } })).toBe(0)
})

test('an application with its provider, in the forms of other documents', async () => {
  await applyTwice(`version: 1
entries:
  providers:
    - model: service_providers_oauth2.oauth2provider
      id: provider
      identifiers: { name: tags-wiki }
      permissions: []
      attrs:
        authorization_flow: !Find [service_flows.flow, [slug, default-authorization-implicit]]
        invalidation_flow: !Find [service_flows.flow, { slug: default-provider-invalidation }]
        redirect_uris: !Enumerate [[a, b], SEQ, { matching_mode: strict, url: !Format ["https://%s.example.com/", !Value 0] }]
  applications:
    - model: service_core.application
      identifiers: { slug: tags-wiki }
      attrs: { name: Wiki, provider: !If [!Find [service_core.application, [slug, gone]], null, !KeyOf provider] }
`)
  const { pk } = await on.db.provider.findFirstOrThrow({ where: { name: 'tags-wiki' } })
  expect(await on.db.application.findUnique({ where: { slug: 'tags-wiki' } })).toMatchObject({ providerPk: pk })
})

test('a document without a name is called after its first entry', async () => {
  const answer = await put('version: 1\nentries: [{ model: service_core.group, identifiers: { name: unnamed } }]')
  const run = await on.admin.get(answer.headers['content-location'] ?? '')
  expect(run.json).toMatchObject({ title: 'apply blueprint service_core.group unnamed', state: 'done' })
})

test('the context is not kept, and secrets made by tags are masked', async () => {
  const answer = await put(`version: 1
context: { secret: keep-this-to-yourself-please, other: nobody-needs-to-know }
entries:
  - model: service_core.group
    conditions: [!Condition [AND, !Context other, !Find [service_core.group, [name, unnamed]]]]
    identifiers: { name: with context }
`)
  expect(answer, answer.text).toMatchObject({ status: 200, json: { applied: true } })
  const run = await on.admin.get(answer.headers['content-location'] ?? '')
  expect(run.text).toContain('with context')
  expect(run.text).not.toMatch(/keep-this|needs-to-know/)
})

const group = (more: string) =>
  `version: 1\nentries:\n- { model: service_core.group, id: top, identifiers: { name: wrong top } }\n- { model: service_core.group, identifiers: { name: wrong }, ${more} }\n`

test.each([
  ['a name out of tags', 'attrs: { parent: !If [!KeyOf top, kept, null] }', /A name cannot come out of tags/],
  ['a value of the wrong type', 'attrs: { is_superuser: !If [!KeyOf top, [1], true] }', /true or false/],
  ['an unknown field in !Find', 'attrs: { parent: !If [!Find [service_core.group, [nme, x]], null, null] }', /own/],
  [
    'a key of another model',
    'attrs: { parent: !If [!KeyOf top, !Find [service_flows.flow, [slug, FLOW]], null] }',
    /The key is of a flow: a group is needed/,
  ],
  ['no row', 'attrs: { attributes: { a: !Find [service_core.group, [name, no such]] } }', /finds nothing/],
  ['no entry', 'attrs: { attributes: { a: !KeyOf none } }', /names no other entry of this document/],
  ['no entry in a condition', 'conditions: [!KeyOf none]', /names no other entry of this document/],
  [
    'an unknown model in a condition',
    'conditions: [!Find [service_core.grp, [name, x]]]',
    /service_core.grp names no model/,
  ],
  ['a variable', 'attrs: { attributes: { a: !Env HOME } }', /!Env: is resolved on the side of the caller/],
  ['permissions', 'permissions: [{ permission: x }]', /given by roles and groups/],
])('%s: 400, and nothing is written', async (_, more, why) => {
  const { slug } = await on.db.flow.findFirstOrThrow()
  const answer = await answered(400, put(group(more.replace('FLOW', slug))))
  expect(answer.text).toMatch(why)
  expect(await on.db.group.count({ where: { name: { startsWith: 'wrong' } } })).toBe(0)
})

describe('an entry that is skipped', () => {
  const skipped = (condition: string, more: string) =>
    `version: 1\nentries:\n- { model: service_core.group, id: maybe, conditions: [${condition}], identifiers: { name: maybe } }\n- { model: service_core.group, identifiers: { name: after }, ${more} }\n`

  test('has no key: an error where it is false in the text', async () => {
    const answer = await answered(400, put(skipped('false', 'attrs: { parent: !KeyOf maybe }')))
    expect(answer.text).toContain('!KeyOf maybe names an entry that is skipped')
  })

  test('has no key: an error where only the database knows', async () => {
    const condition = '!Find [service_core.group, [name, never there]]'
    const answer = await answered(400, put(skipped(condition, 'attrs: { parent: !KeyOf maybe }')))
    expect(answer.text).toContain('!KeyOf maybe names an entry that is skipped')
    expect(await on.db.group.count({ where: { name: 'after' } })).toBe(0)
  })

  test('may be what another condition asks for', async () => {
    expect(await applyTwice(skipped('false', 'conditions: [!Condition [NOR, !KeyOf maybe]]'))).toEqual([
      'entry 0 (group "maybe") skipped: its conditions are false',
      expect.stringContaining('group "after" created'),
    ])
  })

  test('is applied when an earlier entry makes its condition true', async () => {
    const logs = await applyTwice(
      'version: 1\nentries:\n- { model: service_core.group, identifiers: { name: earlier } }\n- { model: service_core.group, conditions: [!Find [service_core.group, [name, earlier]]], identifiers: { name: later } }\n',
    )
    expect(logs).toHaveLength(2)
    expect(await on.db.group.count({ where: { name: 'later' } })).toBe(1)
  })

  test.each(['!Find [service_core.group, [pk, !KeyOf first]]', '!Format ["%s", !KeyOf first]'])(
    'is not one whose condition is not known yet: %s is checked before anything is recorded',
    async (condition) => {
      const first = '- { model: service_core.group, id: first, identifiers: { name: not known yet } }'
      const second = `- { model: service_core.group, conditions: [${condition}], identifiers: { name: then } }`
      const wrong = second.replace('name: then }', 'name: then }, attrs: { parent: no such group }')
      const before = await on.db.run.count()
      const refused = await answered(400, put(`version: 1\nentries:\n${first}\n${wrong}\n`))
      expect(refused.text).toContain('No group is called')
      expect(await on.db.run.count()).toBe(before)
      expect(await applyTwice(`version: 1\nentries:\n${first}\n${second}\n`)).toEqual([
        expect.stringContaining('group "not known yet" created'),
        expect.stringContaining('group "then" created'),
      ])
      await on.db.group.deleteMany({ where: { name: { in: ['not known yet', 'then'] } } })
    },
  )

  test('refuses a reviewed plan when its condition became true since', async () => {
    const text =
      'version: 1\nentries:\n- { model: service_core.group, conditions: [!Find [service_core.group, [name, reviewed]]], identifiers: { name: by review } }\n- { model: service_core.group, identifiers: { name: beside } }\n'
    const plan = await put(text, '?dry_run=true')
    expect(logsOf(plan)).toEqual([expect.stringContaining('entry 0 (group "by review") skipped'), expect.any(String)])
    await on.make.group({ name: 'reviewed' })
    await answered(412, put(text, '', { 'if-match': plan.headers.etag }))
    expect(await on.db.group.count({ where: { name: { in: ['by review', 'beside'] } } })).toBe(0)
  })
})
