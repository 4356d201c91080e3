import { z } from 'zod'
import type { Prisma } from '../db/generated/client.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'

/** A provider as its application shows it. */

export const providerSummary = z.object({
  pk: z.int(),
  name: z.string(),
  authentication_flow: z.guid().nullable(),
  authorization_flow: z.guid().nullable(),
  property_mappings: z.array(z.guid()),
  component: z.string(),
  assigned_application_slug: z.string(),
  assigned_application_name: z.string(),
  assigned_backchannel_application_slug: z.string(),
  assigned_backchannel_application_name: z.string(),
  verbose_name: z.string(),
  verbose_name_plural: z.string(),
  meta_model_name: z.string(),
})

export type ProviderSummary = z.output<typeof providerSummary>

export const providerSelect = {
  pk: true,
  name: true,
  kind: true,
  authenticationFlowPk: true,
  authorizationFlowPk: true,
  settings: true,
  application: { select: { slug: true, name: true } },
  backchannel: { select: { application: { select: { slug: true, name: true } } } },
} satisfies Prisma.ProviderSelect

export type ProviderRow = Prisma.ProviderGetPayload<{ select: typeof providerSelect }>

export function toProviderSummary(row: ProviderRow, kinds: Registry['kinds']): ProviderSummary {
  // A kind whose file is gone still has rows.
  const model = kinds.get(row.kind)
  const verboseName = model?.provider.verboseName ?? row.kind
  const { property_mappings: mappings } = settingsOf(row)
  const backchannel = row.backchannel?.application
  return {
    pk: row.pk,
    name: row.name,
    authentication_flow: row.authenticationFlowPk,
    authorization_flow: row.authorizationFlowPk,
    property_mappings: Array.isArray(mappings) ? mappings.map(String) : [],
    component: model?.provider.component ?? '',
    assigned_application_slug: row.application?.slug ?? '',
    assigned_application_name: row.application?.name ?? '',
    assigned_backchannel_application_slug: backchannel?.slug ?? '',
    assigned_backchannel_application_name: backchannel?.name ?? '',
    verbose_name: verboseName,
    verbose_name_plural: `${verboseName}s`,
    meta_model_name: model?.name ?? '',
  }
}

/** Where an application of this provider is opened; null for kinds that have no such address. */
export const launchUrlOf = (row: ProviderRow, kinds: Registry['kinds']): string | null =>
  kinds.get(row.kind)?.provider.launchUrl(settingsOf(row)) ?? null

const settingsOf = ({ settings }: ProviderRow) => (isObject(settings) ? settings : {})
