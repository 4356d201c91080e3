import { createPrivateKey, hash, type KeyObject, X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { attempt } from '../attempt.ts'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Keyring } from '../db/seal.ts'
import { withExample } from '../example.ts'
import { isObject } from '../json-object.ts'
import type { Field, Values } from '../models/define.ts'
import type { ProviderModel } from '../models/provider.ts'
import { type Actor, allows, mayReadSecrets } from '../permissions.ts'
import { keysOf, toMaskedValues, validSecrets } from '../plan/storage.ts'
import { rowOf, showsEmbedded } from './provider.ts'
import { schemaName } from './schema-names.ts'
import { inOrder, type Reading, type View } from './view.ts'

/**
 * The configuration of a provider for the server that uses it: secrets opened, references as objects. A caller without the right
 * to the secrets of a row gets null in their place (docs/adr/0140-consumers-read-configurations.md).
 */

/** The values of a secret that are valid now, the newest first. */
const secretOf = (value: z.ZodType, id: string) =>
  z
    .array(
      z
        .object({
          value: value.meta({ description: 'The secret.' }),
          until: z.iso
            .datetime()
            .nullable()
            .meta({ description: 'Until when it is valid; null: until it is replaced.' }),
        })
        .meta({ id }),
    )
    .nullable()
    .meta({
      id: `${id}s`,
      description:
        'Each value that is valid now. Empty: it has none. Null: the caller lacks the permission to read it, or it was sealed with another SECRET_KEY. Never compare a client with null.',
    })
const secretText = secretOf(z.string(), 'SecretValue')
const secretObject = secretOf(z.record(z.string(), z.unknown()), 'SecretObject')

const flow = z
  .object({
    slug: z.string(),
    name: z.string(),
    title: z.string(),
    designation: z.string(),
    asks_for_consent: z.boolean().meta({ description: 'Whether the user is asked before a client gets a token.' }),
  })
  .meta({ id: 'ConsumedFlow' })

const mapping = z
  .object({
    name: z.string(),
    managed: z.string().nullable(),
    scope_name: z.string().meta({ description: 'The scope by which clients ask for it; empty: it always applies.' }),
    expression: z.string().nullable().meta({
      description:
        'A function body of `user` and `provider`: run it in a sandbox. Null: the caller lacks `view_propertymapping`.',
    }),
    language: z.literal('javascript').meta({ type: 'string', const: undefined, examples: ['javascript'] }),
  })
  .meta({ id: 'ConsumedMapping' })

const jwk = z.record(z.string(), z.unknown())

const keyPair = z
  .object({
    name: z.string(),
    certificate_data: z.string(),
    jwks: z
      .object({ keys: z.array(jwk) })
      .meta({ description: 'The public key, as a JWK set: empty for a type that JWK does not have.' }),
    private_jwk: jwk.nullable().meta({
      description: 'The private key. Null: there is none, or the caller lacks `read_certificatekeypair_secrets`.',
    }),
  })
  .meta({ id: 'ConsumedKeyPair' })

const application = z
  .object({
    slug: withExample(z.string(), 'grafana'),
    name: withExample(z.string(), 'Grafana'),
    group: z.string(),
    launch_url: z.string(),
    owner: z.string().nullable(),
  })
  .meta({ id: 'ConsumedApplication' })

const ofTarget = { flow, propertymapping: mapping, certificatekeypair: keyPair } as const
type Target = keyof typeof ofTarget
const targetOf = ({ reference }: Field): Target | undefined =>
  (Object.keys(ofTarget) as Target[]).find((target) => target === reference?.target)

const schemaOfField = (field: Field): z.ZodType => {
  const target = targetOf(field)
  if (field.secret) return field.schema.safeParse({}).success ? secretObject : secretText
  if (target === undefined) return field.schema
  return field.reference?.many ? z.array(ofTarget[target]) : ofTarget[target].nullable()
}

type Objects = Readonly<Record<Target, ReadonlyMap<string, unknown>>>

/** @param keyring opens secrets */
export function consumerView(model: ProviderModel, keyring: Keyring) {
  const fields = [...model.fields.values()]
  const schema = z
    .object({
      pk: z.int(),
      owner: z.string().nullable(),
      ...Object.fromEntries(fields.map((field) => [field.name, schemaOfField(field)])),
      application: application.nullable().meta({ description: 'The application that users open with it.' }),
      backchannel_application: application.nullable().meta({ description: 'The application that it serves beside.' }),
    })
    .meta({ id: schemaName(`read_${model.provider.kind}_configuration`), description: model.provider.verboseName })
  return {
    model: 'Provider',
    schema,
    async *read(tx: Tx, keys: readonly number[], { actor }: Reading) {
      const where = { pk: { in: [...keys] } }
      const found = await tx.provider.findMany({ where, include })
      const rows = inOrder(keys, found, ({ pk }) => pk).map((row) => ({
        row,
        values: toMaskedValues(model, rowOf(row)),
      }))
      const reader = { model, actor, keyring }
      const objects = await readObjects(tx, rows, reader)
      yield rows.map((each) => toConfiguration(each, objects, reader))
    },
  } satisfies View<'Provider'>
}

const applicationSelect = {
  select: { slug: true, name: true, group: true, metaLaunchUrl: true, owner: true },
} satisfies Prisma.ApplicationDefaultArgs

const include = {
  application: applicationSelect,
  backchannel: { select: { application: applicationSelect } },
} satisfies Prisma.ProviderInclude

type Row = Prisma.ProviderGetPayload<{ include: typeof include }>
type ReadRow = { readonly row: Row; readonly values: Values }
type ApplicationRow = Prisma.ApplicationGetPayload<typeof applicationSelect>

type Reader = { readonly model: ProviderModel; readonly actor: Actor; readonly keyring: Keyring }

async function readObjects(tx: Tx, rows: readonly ReadRow[], { model, actor, keyring }: Reader): Promise<Objects> {
  const keys = (target: Target) => [
    ...new Set(
      [...model.fields.values()]
        .filter((field) => targetOf(field) === target)
        .flatMap(({ name }) => rows.flatMap(({ values }) => keysOf(values[name]).map(String))),
    ),
  ]
  const of = (target: Target) => ({ where: { pk: { in: keys(target) } } })
  const [flows, mappings, pairs] = [
    await tx.flow.findMany(of('flow')),
    await tx.propertyMapping.findMany(of('propertymapping')),
    await tx.certificateKeyPair.findMany(of('certificatekeypair')),
  ]
  const byKey = <Found extends { readonly pk: string }>(found: readonly Found[], show: (row: Found) => unknown) =>
    new Map(found.map((row) => [row.pk, show(row)]))
  const mayRead = mayReadSecrets(actor, 'certificatekeypair', null)
  return {
    flow: byKey(flows, ({ slug, name, title, designation, asksForConsent: asks_for_consent }) => {
      return { slug, name, title, designation, asks_for_consent }
    }),
    propertymapping: byKey(mappings, ({ name, managed, scopeName: scope_name, expression: text }) => {
      const expression = allows(actor, 'view_propertymapping') ? text : null
      return { name, managed, scope_name, expression, language: 'javascript' }
    }),
    certificatekeypair: byKey(pairs, ({ pk, name, certificateData, sealedKey }) => {
      const place = { table: 'certificate_key_pairs', row: pk, column: 'sealed_key' }
      const key = mayRead && sealedKey !== null ? attempt(() => JSON.parse(keyring.open(sealedKey, place))) : undefined
      return {
        name,
        certificate_data: certificateData,
        jwks: {
          keys: [jwkOf(attempt(() => new X509Certificate(certificateData).publicKey))].filter((each) => each !== null),
        },
        private_jwk: jwkOf(attempt(() => createPrivateKey(String(key)))),
      }
    }),
  }
}

/** A key with its thumbprint as `kid` (RFC 7638); null for a type that JWK does not have. */
function jwkOf(key: KeyObject | undefined): object | null {
  const exported = key && attempt(() => key.export({ format: 'jwk' }))
  if (exported === undefined) return null
  const { crv, e, kty, n, x, y } = exported
  const kid = hash('sha256', JSON.stringify({ crv, e, kty, n, x, y }), 'base64url')
  return { ...exported, kid }
}

function toConfiguration({ row, values }: ReadRow, objects: Objects, reader: Reader): object {
  const { model, actor, keyring } = reader
  const [stored, now] = [rowOf(row), new Date()]
  const isOpened = mayReadSecrets(actor, model.resource, row.owner)
  const shown = (field: Field): unknown => {
    const { [field.name]: value } = values
    const target = targetOf(field)
    if (field.secret) return (isOpened && attempt(() => validSecrets(model, stored, field, keyring, now))) || null
    if (target === undefined) return value
    const found = keysOf(value).flatMap((key) => objects[target].get(String(key)) ?? [])
    return field.reference?.many ? found : (found[0] ?? null)
  }
  return {
    pk: row.pk,
    owner: row.owner,
    ...Object.fromEntries([...model.fields.values()].map((field) => [field.name, shown(field)])),
    application: toApplication(row.application, row, reader),
    backchannel_application: toApplication(row.backchannel?.application, row, reader),
  }
}

function toApplication(
  app: ApplicationRow | null | undefined,
  { settings }: Row,
  { model: { provider }, actor }: Reader,
): z.output<typeof application> | null {
  if (!app || !showsEmbedded(actor, app)) return null
  const { slug, name, group, owner, metaLaunchUrl } = app
  const launch_url = metaLaunchUrl || (provider.launchUrl(isObject(settings) ? settings : {}) ?? '')
  return { slug, name, group, launch_url, owner }
}
