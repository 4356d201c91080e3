import { z } from 'zod'
import type { Registry } from '../models/index.ts'

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

/** What a summary, and an application's launch URL, are made of. */
export type ProviderRow = Pick<
  ProviderSummary,
  | 'pk'
  | 'name'
  | 'authentication_flow'
  | 'authorization_flow'
  | 'assigned_application_slug'
  | 'assigned_application_name'
  | 'assigned_backchannel_application_slug'
  | 'assigned_backchannel_application_name'
> & { readonly kind: string; readonly settings: Readonly<Record<string, unknown>> }

/** Rows of `ProviderRow`; `p` is the provider. */
export const providerRows = `SELECT p.pk, p.name, p.kind, p.authentication_flow, p.authorization_flow, p.settings,
    coalesce(own.slug, '') AS assigned_application_slug, coalesce(own.name, '') AS assigned_application_name,
    coalesce(back.slug, '') AS assigned_backchannel_application_slug, coalesce(back.name, '') AS assigned_backchannel_application_name
  FROM providers p LEFT JOIN applications own ON own.provider_pk = p.pk
    LEFT JOIN backchannel_providers bp ON bp.provider_pk = p.pk LEFT JOIN applications back ON back.pk = bp.application_pk`

/** In the order of the contract, which PostgreSQL's JSON keeps. */
export function toProviderSummary(row: ProviderRow, kinds: Registry['kinds']): ProviderSummary {
  const { kind, settings, pk, name, authentication_flow, authorization_flow, ...assigned } = row
  const model = kinds.get(kind)
  const mappings = settings.property_mappings
  return {
    ...{ pk, name, authentication_flow, authorization_flow },
    property_mappings: Array.isArray(mappings) ? mappings.map(String) : [],
    component: model?.provider.component ?? '',
    ...assigned,
    // A kind whose file is gone: its rows are still there, and still somebody's.
    verbose_name: model?.provider.verboseName ?? kind,
    verbose_name_plural: `${model?.provider.verboseName ?? kind}s`,
    meta_model_name: model?.name ?? '',
  }
}
