import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { isObject } from '../json-object.ts'
import type { ProviderModel } from '../models/provider.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, ownersShown } from '../permissions.ts'
import { columnsOf } from '../plan/statements.ts'
import { toMaskedValues } from '../plan/storage.ts'
import { discriminatorOf, schemaName } from './schema-names.ts'
import { fieldSchemas, originSchemas, readMakers, toOrigin } from './stored.ts'
import { columnName, inOrder, type Reading, type View } from './view.ts'

/** The members of a provider beside its fields. */
const besideFields = z.object({
  component: withExample(z.string(), 'service-provider-oauth2-form'),
  assigned_application_slug: withExample(z.string(), 'grafana'),
  assigned_application_name: withExample(z.string(), 'Grafana'),
  assigned_backchannel_application_slug: withExample(z.string(), ''),
  assigned_backchannel_application_name: withExample(z.string(), ''),
  verbose_name: withExample(z.string(), 'OAuth2/OpenID Provider'),
  verbose_name_plural: withExample(z.string(), 'OAuth2/OpenID Providers'),
})

/** A provider as its application shows it. */
export const providerSummary = z
  .object({
    pk: withExample(z.int(), 12),
    name: withExample(z.string(), 'grafana'),
    authentication_flow: withExample(z.guid().nullable(), null),
    authorization_flow: withExample(z.guid().nullable(), '6f7e0000-0000-4000-8000-000000000102'),
    property_mappings: withExample(z.array(z.guid()), ['6f7e0000-0000-4000-8000-000000000201']),
    ...besideFields.shape,
    meta_model_name: withExample(z.string(), 'service_providers_oauth2.oauth2provider'),
  })
  .meta({ id: 'ProviderSummary' })

export type ProviderSummary = z.output<typeof providerSummary>

const include = {
  application: { select: { slug: true, name: true, owner: true } },
  backchannel: { select: { application: { select: { slug: true, name: true, owner: true } } } },
} satisfies Prisma.ProviderInclude

export const providerSummaryArgs = { include, omit: { secrets: true } } satisfies Prisma.ProviderDefaultArgs

type ProviderRow = Prisma.ProviderGetPayload<typeof providerSummaryArgs>

/**
 * Whether a caller whose rights are bound to owners sees a row that another object shows. All others see it with that
 * object.
 */
export function showsEmbedded(actor: Actor, { owner }: { readonly owner: string | null }): boolean {
  const owners = ownersShown(actor)
  return owners === null || (owner !== null && owners.includes(owner))
}

export function toProviderSummary(row: ProviderRow, kinds: Registry['kinds'], actor: Actor): ProviderSummary {
  // A kind whose file was removed still has rows.
  const model = kinds.get(row.kind)
  const verboseName = model?.provider.verboseName ?? row.kind
  const { property_mappings: mappings } = settingsOf(row)
  const shown = <App extends { readonly owner: string | null }>(app: App | null | undefined) =>
    app && showsEmbedded(actor, app) ? app : undefined
  const [application, backchannel] = [shown(row.application), shown(row.backchannel?.application)]
  return {
    pk: row.pk,
    name: row.name,
    authentication_flow: row.authenticationFlowPk,
    authorization_flow: row.authorizationFlowPk,
    property_mappings: Array.isArray(mappings) ? mappings.map(String) : [],
    component: model?.provider.component ?? '',
    assigned_application_slug: application?.slug ?? '',
    assigned_application_name: application?.name ?? '',
    assigned_backchannel_application_slug: backchannel?.slug ?? '',
    assigned_backchannel_application_name: backchannel?.name ?? '',
    verbose_name: verboseName,
    verbose_name_plural: `${verboseName}s`,
    meta_model_name: model?.name ?? '',
  }
}

/** The address at which an application of this provider is opened; null for kinds that have none. */
export const launchUrlOf = (row: ProviderRow, kinds: Registry['kinds']): string | null =>
  kinds.get(row.kind)?.provider.launchUrl(settingsOf(row)) ?? null

const settingsOf = ({ settings }: ProviderRow) => (isObject(settings) ? settings : {})

type FullRow = Prisma.ProviderGetPayload<{ include: typeof include }>

/** The fields of a row by the names of their columns. */
const columns = Object.fromEntries(
  Object.values(Prisma.ProviderScalarFieldEnum).map((field) => [columnName(field).replace(/_pk$/, ''), field]),
)

/** The row as the engine reads it. */
export const rowOf = (row: Prisma.ProviderModel) => ({
  ...Object.fromEntries(Object.entries(columns).map(([column, field]) => [column, row[field]])),
  pk: row.pk,
})

const nameOf = ({ provider }: ProviderModel) => schemaName(`read_${provider.kind}_provider`)

function schemaOf(model: ProviderModel) {
  const missing = columnsOf(model).filter((column) => !Object.hasOwn(columns, column))
  if (missing.length > 0) throw new Error(`schema.prisma has no ${missing.join(', ')} of providers: add it there`)
  return z
    .object({
      pk: z.int(),
      ...fieldSchemas(model),
      ...besideFields.shape,
      meta_model_name: z.literal(model.name),
      ...originSchemas,
    })
    .meta({ id: nameOf(model), description: model.provider.verboseName })
}

/** Providers with all of their fields: those of all kinds, and those of each. */
export function providerViews(kinds: Registry['kinds']) {
  async function* read(tx: Tx, keys: readonly number[], { actor }: Reading) {
    const found = await tx.provider.findMany({ where: { pk: { in: [...keys] } }, include })
    const rows = inOrder(keys, found, ({ pk }) => pk)
    const makers = await readMakers(tx, rows, actor)
    yield rows.map((row) => ({ ...toProvider(row, kinds, actor), ...toOrigin(row, makers) }))
  }
  const ofKinds = [...kinds.values()].map((model) => ({
    model,
    view: { model: 'Provider', schema: schemaOf(model), read } satisfies View<'Provider'>,
  }))
  const named = ofKinds.map(({ model }) => [model.name, nameOf(model)] as const)
  const schema = z.xor(ofKinds.map(({ view }) => view.schema)).meta({
    id: 'ReadProvider',
    // This stands beside the variants, which have it too: openapi-generator's Rust would miss it in them otherwise, and could not
    // read any.
    type: 'object',
    properties: { meta_model_name: { type: 'string' } },
    required: ['meta_model_name'],
    discriminator: discriminatorOf('meta_model_name', named),
  })
  return { all: { model: 'Provider', schema, read } satisfies View<'Provider'>, ofKinds }
}

/**
 * A provider in full. If the file of its kind was removed, only the members that all kinds share are known: its settings may hold
 * anything.
 */
function toProvider(row: FullRow, kinds: Registry['kinds'], actor: Actor): object {
  const summary = toProviderSummary(row, kinds, actor)
  const model = kinds.get(row.kind)
  if (model === undefined) return summary
  const { pk, meta_model_name } = summary
  return { pk, ...toMaskedValues(model, rowOf(row)), ...besideFields.parse(summary), meta_model_name }
}
