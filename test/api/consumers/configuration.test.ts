import { createHash, createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { selfSigned } from '../../../src/models/self-signed.ts'
import {
  aFlow,
  aKeyPair,
  anApplication,
  aProvider,
  applied,
  applyPath,
  installation,
  kinds,
  name,
  named,
} from '../../support/kit.ts'

/** What a server that signs users in reads of a provider. */

const there = await installation()
const secretsRight = 'read_oauth2provider_secrets'
const read = async (kind: string, of: string, as = there.admin) => {
  const { json } = await as.get(`/api/v3/consumers/${kind}/?name=${of}`)
  return Object(json).results[0]
}

test('flows, mappings and keys are objects, with all that a sign-in needs', async () => {
  const { certificate: certificate_data, key: key_data } = await selfSigned('keys.example')
  const asks = { name: 'Consent', title: 'May it?', designation: 'authorization', asks_for_consent: true }
  const mapping = { expression: 'return { team: "one" }', scope_name: 'team' }
  await applied(
    there.admin.apply([
      aFlow(`flow-${name}`, asks),
      aKeyPair(`keys-${name}`, { certificate_data, key_data }),
      {
        model: 'service_mappings.propertymapping',
        identifiers: { name: `mapping-${name}`, kind: 'oauth2' },
        attrs: mapping,
      },
    ]),
  )
  const provider = {
    authorization_flow: `flow-${name}`,
    signing_key: `keys-${name}`,
    property_mappings: [`mapping-${name}`],
  }
  await applied(there.admin.put(applyPath, await named('oauth2', name, { provider }), { owner: 'team-one' }))
  const found = await read('oauth2', name)
  expect(found).toMatchObject({
    name,
    owner: 'team-one',
    client_id: `client-${name}`,
    authorization_flow: { slug: `flow-${name}`, ...asks },
    property_mappings: [{ name: `mapping-${name}`, managed: null, language: 'javascript', ...mapping }],
    application: { slug: name, owner: 'team-one' },
    backchannel_application: null,
  })
  const { jwks, private_jwk, certificate_data: shown } = found.signing_key
  expect(shown).toBe(certificate_data)
  const publicJwk = new X509Certificate(certificate_data).publicKey.export({ format: 'jwk' })
  const { e, kty, n } = publicJwk
  const kid = createHash('sha256').update(JSON.stringify({ e, kty, n })).digest('base64url')
  expect(jwks).toEqual({ keys: [{ ...publicJwk, kid }] })
  expect(private_jwk).toEqual({ ...createPrivateKey(key_data).export({ format: 'jwk' }), kid })
  expect(createPublicKey({ key: private_jwk, format: 'jwk' }).export({ format: 'jwk' })).toEqual(publicJwk)

  const reader = await there.make.user({ permissions: ['view_oauth2provider', secretsRight] })
  const { signing_key, client_secret, property_mappings } = await read('oauth2', name, reader)
  expect(property_mappings).toMatchObject([{ name: `mapping-${name}`, scope_name: 'team', expression: null }])
  expect(signing_key).toEqual({ name: `keys-${name}`, certificate_data, jwks, private_jwk: null })
  expect(client_secret).toEqual([{ value: expect.any(String), until: null }])
})

test('while a rotation overlaps, both secrets are there, the newer one first, each with its end', async () => {
  const put = async (client_secret: unknown) =>
    applied(there.admin.put(applyPath, await named('oauth2', name, { provider: { client_secret } })))
  await put(`first-${name}`)
  await put({ value: `second-${name}`, overlap: 'hours=1' })
  const { client_secret } = await read('oauth2', name)
  expect(client_secret).toEqual([
    { value: `second-${name}`, until: null },
    { value: `first-${name}`, until: expect.stringMatching(/^\d{4}-.*Z$/) },
  ])
  await there.db
    .$executeRaw`UPDATE providers SET settings = settings || '{"previous_client_secret_expires": "2020-01-01T00:00:00Z"}' WHERE name = ${name}`
  expect((await read('oauth2', name)).client_secret).toEqual([{ value: `second-${name}`, until: null }])
})

test.each(kinds)('of %s, each secret is opened with the right alone, and null without', async (kind) => {
  const model = there.engine.registry.kinds.get(kind)
  const fields = [...(model?.fields.values() ?? [])].filter(({ secret }) => secret).map((field) => field.name)
  const body = await named(kind, name)
  await applied(there.admin.put(applyPath, body))
  const [viewer, reader] = [
    await there.make.user({ permissions: [`view_${model?.resource}`] }),
    await there.make.user({ permissions: [`view_${model?.resource}`, `read_${model?.resource}_secrets`] }),
  ]
  const [shown, opened] = [await read(kind, name, viewer), await read(kind, name, reader)]
  for (const field of fields) {
    const { [field]: sent } = body.provider as Record<string, unknown>
    expect([field, shown[field]]).toEqual([field, null])
    expect([field, opened[field]]).toEqual([
      field,
      typeof sent === 'string' ? [{ value: sent, until: null }] : expect.any(Array),
    ])
  }
  expect(JSON.stringify([shown, opened])).not.toContain('"set":true')
})

test('a backchannel provider has its application, too', async () => {
  await applied(
    there.admin.apply([
      aProvider('scim', `scim-${name}`, { url: 'https://scim.example', token: 'the-token' }),
      anApplication(name, { name: 'With SCIM', backchannel_providers: [`scim-${name}`] }),
    ]),
  )
  expect(await read('scim', `scim-${name}`)).toMatchObject({
    application: null,
    backchannel_application: { slug: name, name: 'With SCIM' },
  })
})

test('a mask that an old version stored is no secret', async () => {
  await applied(there.admin.submit('oauth2', name))
  const { pk, uuid } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  const place = { table: 'providers', row: uuid, column: 'secrets.client_secret' }
  const secrets = { client_secret: there.engine.keyring.seal(JSON.stringify('********'), place) }
  await there.db.provider.update({ where: { pk }, data: { secrets } })
  expect((await read('oauth2', name)).client_secret).toEqual([])
})

test('a secret that no key opens is null, and the rest of the page is there', async () => {
  await applied(there.admin.submit('oauth2', name))
  await there.db
    .$executeRaw`UPDATE providers SET secrets = '{"client_secret": "v2.AAAAAAAA.broken"}' WHERE name = ${name}`
  expect(await read('oauth2', name)).toMatchObject({ name, client_secret: null })
})
