import { z } from 'zod'
import type { Prisma } from '../db/generated/client.ts'
import { policyEngineModes } from '../models/application.ts'
import type { Registry } from '../models/registry.ts'
import { launchUrlFields } from '../models/urls.ts'
import { launchUrlOf, providerSelect, providerSummary, toProviderSummary } from './provider.ts'
import type { User } from './user.ts'

/** An application with its providers. */

export const application = z.object({
  pk: z.guid(),
  name: z.string(),
  slug: z.string(),
  provider: z.int().nullable(),
  provider_obj: providerSummary.nullable(),
  backchannel_providers: z.array(z.int()),
  backchannel_providers_obj: z.array(providerSummary),
  launch_url: z.string().nullable().meta({ description: 'For this user: its placeholders are filled in.' }),
  open_in_new_tab: z.boolean(),
  meta_launch_url: z.string(),
  meta_icon: z.string().nullable(),
  meta_description: z.string(),
  meta_publisher: z.string(),
  policy_engine_mode: z.enum(policyEngineModes),
  group: z.string(),
})

export const applicationSelect = {
  pk: true,
  name: true,
  slug: true,
  providerPk: true,
  provider: { select: providerSelect },
  backchannelProviders: { select: { provider: { select: providerSelect } }, orderBy: { providerPk: 'asc' } },
  openInNewTab: true,
  metaLaunchUrl: true,
  metaDescription: true,
  metaPublisher: true,
  policyEngineMode: true,
  group: true,
} satisfies Prisma.ApplicationSelect

export type ApplicationRow = Prisma.ApplicationGetPayload<{ select: typeof applicationSelect }>

/** @param user for whom its launch URL is */
export function toApplication(
  row: ApplicationRow,
  { kinds, user }: { kinds: Registry['kinds']; user: User },
): z.output<typeof application> {
  const backchannel = row.backchannelProviders.map(({ provider }) => provider)
  const launchUrl = row.metaLaunchUrl || (row.provider && launchUrlOf(row.provider, kinds))
  return {
    pk: row.pk,
    name: row.name,
    slug: row.slug,
    provider: row.providerPk,
    provider_obj: row.provider && toProviderSummary(row.provider, kinds),
    backchannel_providers: backchannel.map(({ pk }) => pk),
    backchannel_providers_obj: backchannel.map((provider) => toProviderSummary(provider, kinds)),
    launch_url: launchUrl && withUser(launchUrl, user),
    open_in_new_tab: row.openInNewTab,
    meta_launch_url: row.metaLaunchUrl,
    meta_icon: null,
    meta_description: row.metaDescription,
    meta_publisher: row.metaPublisher,
    policy_engine_mode: row.policyEngineMode,
    group: row.group,
  }
}

/** Fills in `%(username)s` and its like, encoded: a user's name can change no other part of the URL. */
const withUser = (template: string, user: User): string =>
  template.replace(/%\(([^)]*)\)s/g, (placeholder, field: string) =>
    launchUrlFields.includes(field) ? encodeURIComponent(String(user[field as keyof User])) : placeholder,
  )
