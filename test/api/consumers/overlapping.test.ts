import { describe, expect, test } from 'vitest'
import { held } from '../../runs/stand.ts'
import {
  aFlow,
  aKeyPair,
  anApplication,
  aProvider,
  applied,
  execute,
  installation,
  name,
  raw,
  rows,
  sql,
  until,
} from '../../support/kit.ts'

/** Consumers miss no change of transactions that are open at the same time, whichever ends first. */

const there = await installation()
const pathOf = (kind: string) => `/api/v3/consumers/${kind}/`
const revisionNow = async (kind: string, as = there.admin) => {
  const { json } = await as.get(pathOf(kind))
  return String(Object(json).revision)
}
const changed = async (kind: string, since: string, as = there.admin) => {
  const { json } = await as.get(`${pathOf(kind)}?since=${encodeURIComponent(since)}`)
  return json
}

const waiting = sql`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

/** Begins a transaction, and returns once its statement is done or waits for another transaction. It stays open until its end. */
async function begin(statement: typeof waiting) {
  const taken = held(there, (tx) => execute(tx, statement))
  let isDone = false
  const done = taken.then(() => {
    isDone = true
  })
  await until('a statement to be done or to wait', async () => isDone || (await rows(there.db, waiting)).length > 0)
  return { done, isDone: () => isDone, end: async () => (await taken)() }
}

const ofOAuth2 = { redirect_uris: [], client_type: 'public' }
const anAuthorization = (of: string) => aFlow(of, { name: of, title: 'Old', designation: 'authorization' })
const aMapping = () => ({
  model: 'service_mappings.propertymapping',
  identifiers: { name, kind: 'oauth2' },
  attrs: { expression: 'return {}' },
})

/** Writes the provider, too, as the service does. */
const refers = (field: string, column: string, table: string) => sql`WITH written AS (
    UPDATE providers SET settings = settings || '{"sub_mode": "user_email"}' WHERE name = ${name} RETURNING pk)
  INSERT INTO provider_references (provider_pk, field, position, ${raw(column)})
    SELECT w.pk, ${field}, 0, t.pk FROM written w, ${raw(table)} t WHERE t.name = ${name}`

describe.each([
  {
    what: 'a flow',
    target: () => anAuthorization(name),
    change: () => sql`UPDATE flows SET title = 'New' WHERE slug = ${name}`,
    use: () =>
      sql`UPDATE providers SET authorization_flow = f.pk FROM flows f WHERE f.slug = ${name} AND providers.name = ${name}`,
  },
  {
    what: 'a property mapping',
    target: aMapping,
    change: () => sql`UPDATE property_mappings SET expression = 'return { new: true }' WHERE name = ${name}`,
    use: () => refers('property_mappings', 'property_mapping_pk', 'property_mappings'),
  },
  {
    what: 'a key pair',
    target: () => aKeyPair(name),
    change: () => sql`UPDATE certificate_key_pairs SET certificate_data = 'new' WHERE name = ${name}`,
    use: () => refers('signing_key', 'certificate_key_pair_pk', 'certificate_key_pairs'),
  },
  {
    what: 'an application',
    kind: 'scim',
    target: () => anApplication(name, { name }),
    change: () => sql`UPDATE applications SET group_name = 'New' WHERE slug = ${name}`,
    use: () => sql`INSERT INTO backchannel_providers (provider_pk, application_pk)
      SELECT p.pk, a.pk FROM providers p, applications a WHERE p.name = ${name} AND a.slug = ${name}`,
  },
])('$what is changed, and a provider gets it meanwhile', ({ kind = 'oauth2', target, change, use }) => {
  const make = () => {
    const flow = `other-${name}`
    const attrs =
      kind === 'scim' ? { url: 'https://scim.example', token: 'x' } : { ...ofOAuth2, authorization_flow: flow }
    return applied(there.admin.apply([anAuthorization(flow), target(), aProvider(kind, name, attrs)]))
  }

  test('before the change', async () => {
    await make()
    const used = await begin(use())
    const edited = await begin(change())
    await used.end()
    await edited.done
    const revision = await revisionNow(kind)
    await edited.end()
    expect(await changed(kind, revision)).toMatchObject({ reset: false, results: [{ name }] })
  })

  test('behind the change', async () => {
    await make()
    const edited = await begin(change())
    const used = await begin(use())
    if (used.isDone()) await used.end()
    const revision = await revisionNow(kind)
    await edited.end()
    await used.end()
    expect(await changed(kind, revision)).toMatchObject({ reset: false, results: [{ name }] })
  })
})

test.each([
  ['its application', () => sql`UPDATE applications SET group_name = 'New' WHERE slug = ${name}`],
  ['its flow', () => sql`UPDATE flows SET title = 'New' WHERE slug = ${name}`],
])('%s is changed while a provider gets another owner', async (_what, change) => {
  const [ours, theirs] = [`ours-${name}`, `theirs-${name}`]
  const attrs = { ...ofOAuth2, authorization_flow: name }
  const flow = anAuthorization(name)
  const entries = [flow, aProvider('oauth2', name, attrs), anApplication(name, { name, provider: name })]
  await applied(there.admin.apply(entries, { owner: theirs }))
  const reader = await there.make.user({ permissions: ['view_oauth2provider'], owners: [ours] })
  const given = await begin(sql`UPDATE providers SET owner = ${ours} WHERE name = ${name}`)
  const edited = await begin(change())
  await given.end()
  await edited.done
  const revision = await revisionNow('oauth2', reader)
  await edited.end()
  expect(await changed('oauth2', revision, reader)).toMatchObject({ reset: false, results: [{ name, owner: ours }] })
})
