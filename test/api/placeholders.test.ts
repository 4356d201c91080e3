import { describe, expect, test } from 'vitest'
import { aFlow, aGroup, answered, aProvider, applyPath, aUser, installation, type Kind, named } from '../support/kit.ts'

/** Tags and placeholders in texts become neither secrets nor hosts; `{"env": ...}` is for the command line program. */

const on = await installation()

const { apply } = on.admin
const secretMessage = /^This is a placeholder, and nothing replaces it here: send the secret\. .*\{"env": "NAME"\}/
const textMessage = /^Holds a placeholder, and nothing replaces it here: send the value\. /
const callerMessage = /are read on the side of the caller: apply the file with gatewright apply/
const zone = 'https://x.$' + '{ZONE}'

/** What a PUT of a provider with these fields says of one of them, `a/0/b`. */
async function refusal(kind: Kind, provider: object, field: string): Promise<unknown> {
  const changes = { provider: { ...provider } }
  const { status, json } = await on.admin.submit(kind, `ph-${kind}`, changes)
  return { status, said: field.split('/').reduce<unknown>((inner, part) => Object(inner)[part], Object(json).provider) }
}

const refused = (message: RegExp) => ({ status: 400, said: [expect.stringMatching(message)] })

describe('a secret', () => {
  test.each(['!Env NAME', '$' + '{NAME}', '{{ name }}', '<name>', 'CHANGEME'])('%s is refused', async (text) => {
    expect(await refusal('radius', { shared_secret: text }, 'shared_secret')).toEqual(refused(secretMessage))
  })

  test.each<[Kind, object, string]>([
    ['oauth2', { client_secret: { create: '!Env X' } }, 'client_secret'],
    ['oauth2', { client_secret: { value: '!Env X', overlap: 'hours=1' } }, 'client_secret'],
    ['scim', { token: '!File token.txt' }, 'token'],
    ['directory_sync_b', { client_secret: '{{ secret }}' }, 'client_secret'],
    ['workspace_sync_a', { credentials: { type: 'x', private_key: '!Env KEY' } }, 'credentials/private_key'],
    ['workspace_sync_a', { credentials: '{"keys": ["<key>"]}' }, 'credentials/keys/0'],
    ['workspace_sync_a', { credentials: '!File account.json' }, 'credentials'],
    ['rac', { settings: { password: '$' + '{PASSWORD}' } }, 'settings/password'],
  ])('in each form and kind: %s %o', async (kind, provider, field) => {
    expect(await refusal(kind, provider, field)).toEqual(refused(secretMessage))
  })

  test('a random one is taken, and one that only holds such signs', async () => {
    for (const text of ['$' + 'ecret{1}', 'x-$' + '{NAME}', '!important', 'correct horse battery staple'])
      expect(await refusal('radius', { shared_secret: text }, 'shared_secret')).toEqual({
        status: 200,
        said: undefined,
      })
  })

  test('in a document as YAML and as JSON, and of a key pair; quotes make a tag a text', async () => {
    const entry = (attrs: string) => `version: 1
metadata: { name: placeholders }
entries:
  - { model: service_crypto.certificatekeypair, identifiers: { name: ph-pair }, attrs: ${attrs} }
`
    const said = [expect.stringMatching(secretMessage)]
    await answered(400, apply(entry('{ key_data: "!File key.pem" }')), { entries: { 0: { key_data: said } } })
    const entries = [aProvider('scim', 'ph', { token: '!Env TOKEN' })]
    await answered(400, apply(entries), { entries: { 0: { token: said } } })
  })
})

describe('another text', () => {
  test.each<[Kind, object, string]>([
    ['oauth2', { redirect_uris: [{ matching_mode: 'strict', url: `${zone}/cb` }] }, 'redirect_uris/0/url'],
    ['oauth2', { redirect_uris: [{ matching_mode: 'regex', url: `^${zone}/cb$` }] }, 'redirect_uris/0/url'],
    ['oauth2', { redirect_uris: `${zone}/cb` }, 'redirect_uris'],
    ['oauth2', { client_id: '!Env CLIENT_ID' }, 'client_id'],
    ['proxy', { external_host: zone }, 'external_host'],
    ['proxy', { external_host: 'https://x.{{ zone }}/' }, 'external_host'],
    ['saml', { acs_url: `${zone}/acs`, audience: 'a' }, 'acs_url'],
    ['saml', { issuer: zone }, 'issuer'],
    ['scim', { url: `${zone}/scim` }, 'url'],
    ['ldap', { base_dn: 'DC=$' + '{DOMAIN},DC=com' }, 'base_dn'],
    ['ldap', { tls_server_name: 'ldap.$' + '{ZONE}' }, 'tls_server_name'],
    ['workspace_sync_a', { delegated_subject: '$' + '{ADMIN}@example.com' }, 'delegated_subject'],
  ])('%s %o is refused', async (kind, provider, field) => {
    expect(await refusal(kind, provider, field)).toEqual(refused(textMessage))
  })

  test.each([
    'https://$HOST/cb',
    'https://$(HOST)/cb',
    'https://%HOST%/cb',
    'https://<host>/cb',
    'https://!Env/cb',
    'app://$HOST/cb',
  ])('the host of %s is refused', async (url) => {
    const redirect_uris = [{ matching_mode: 'strict', url }]
    expect(await refusal('oauth2', { redirect_uris }, 'redirect_uris/0/url')).toEqual(refused(/./))
  })

  test('a launch URL keeps its own placeholders, and prose, attributes and names may hold any', async () => {
    const meta_launch_url = 'https://app.example.com/%(username)s'
    const body = await named('radius', 'ph-launch', {
      app: { meta_launch_url, meta_description: 'Uses $' + '{HOME} of each' },
    })
    expect(await on.admin.put(applyPath, body)).toMatchObject({ status: 200 })
    const launch = { ...body, app: { ...Object(body).app, meta_launch_url: zone } }
    await answered(400, on.admin.put(applyPath, launch), { app: { meta_launch_url: expect.any(Array) } })
    const attributes = { env: 'prod', path: '$' + '{HOME}' }
    for (const each of [attributes, { env: 'prod' }]) {
      const group = { name: `TODO ${Object.keys(each).length}`, attributes: each }
      await answered(201, on.admin.post('/api/v3/core/groups/', group), { attributes: each })
    }
  })
})

test('a name, an expression and a reference by name may hold any; a secret and a host beside them may not', async () => {
  const names = ['!Env PH_GROUP', 'ph-$' + '{TEAM}', '{{ ph }}']
  const expression = 'return {"home": "$' + '{HOME}"}'
  const flow = { name: '$' + '{FLOW}', title: '{{title}}', designation: 'authorization' }
  const mapping = { model: 'service_mappings.propertymapping', identifiers: { name: '!File ph', kind: 'oauth2' } }
  const entries = [
    ...names.map((name) => aGroup(name, { attributes: { name } })),
    aGroup('ph-below', { parent: names[0] }),
    aUser('ph-user', { name: names[1], groups: names }),
    aFlow('ph-flow', flow),
    { ...mapping, attrs: { expression } },
  ]
  await answered(200, apply(entries))
  expect(await on.db.group.count({ where: { name: { in: names } } })).toBe(3)
  expect(await on.db.group.findFirst({ where: { name: 'ph-below' }, select: { parent: true } })).toMatchObject({
    parent: { name: names[0] },
  })
  const provider = {
    name: '$' + '{PROVIDER}',
    authorization_flow: 'ph-flow',
    property_mappings: [mapping.identifiers.name],
    redirect_uris: [{ matching_mode: 'strict', url: 'https://ph.example.com/cb' }],
  }
  const changes = { app: { name: '{{ app }}', group: '{{group}}' }, provider: { ...provider } }
  expect(await on.admin.submit('oauth2', 'ph-named', changes)).toMatchObject({ status: 200 })
  const wrong = { ...provider, client_secret: '!Env X', redirect_uris: [{ matching_mode: 'strict', url: zone }] }
  const refusedAnswer = await answered(400, on.admin.submit('oauth2', 'ph-named', { ...changes, provider: wrong }))
  expect(refusedAnswer.errors.map(({ pointer }) => pointer).sort()).toEqual([
    '/provider/client_secret',
    '/provider/redirect_uris/0/url',
  ])
})

test('a reference by a name that no row has is told of the name, not of a placeholder', async () => {
  expect(await refusal('oauth2', { authorization_flow: '!Env FLOW' }, 'authorization_flow')).toEqual(
    refused(/^No flow is called "!Env FLOW"\./),
  )
})

test.each<[Kind, object, string]>([
  ['radius', { shared_secret: { env: 'NAME' } }, 'shared_secret'],
  ['radius', { shared_secret: { create: { file: 'x.txt' } } }, 'shared_secret'],
  ['workspace_sync_a', { credentials: { file: 'account.json' } }, 'credentials'],
  ['workspace_sync_a', { credentials: { private_key: { env: 'KEY' } } }, 'credentials/private_key'],
  ['oauth2', { client_id: { env: 'CLIENT_ID' } }, 'client_id'],
  ['oauth2', { redirect_uris: [{ matching_mode: 'strict', url: { env: 'URL' } }] }, 'redirect_uris/0/url'],
])('the form of the caller is refused by the service: %s %o', async (kind, provider, field) => {
  expect(await refusal(kind, provider, field)).toEqual(refused(callerMessage))
})
