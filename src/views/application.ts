import { z } from 'zod'
import { policyEngineModes } from '../models/application.ts'
import type { Registry } from '../models/index.ts'
import { launchUrlMembers } from '../models/urls.ts'
import { type ProviderRow, providerRows, providerSummary, toProviderSummary } from './provider.ts'
import type { Row, View } from './view.ts'

/** An application with its providers. */

export const application = z.object({
  pk: z.guid(),
  name: z.string(),
  slug: z.string(),
  provider: z.int().nullable(),
  provider_obj: providerSummary.nullable(),
  backchannel_providers: z.array(z.int()),
  backchannel_providers_obj: z.array(providerSummary),
  launch_url: z.string().nullable(),
  open_in_new_tab: z.boolean(),
  meta_launch_url: z.string(),
  meta_icon: z.string().nullable(),
  meta_description: z.string(),
  meta_publisher: z.string(),
  policy_engine_mode: z.enum(policyEngineModes),
  group: z.string(),
})

/** One statement, providers and all. */
const columns = `a.pk, a.name, a.slug, a.provider_pk AS provider,
    (SELECT to_json(o) FROM (${providerRows} WHERE p.pk = a.provider_pk) o) AS provider_obj,
    ARRAY(SELECT b.provider_pk FROM backchannel_providers b WHERE b.application_pk = a.pk ORDER BY b.provider_pk) AS backchannel_providers,
    (SELECT coalesce(json_agg(o ORDER BY o.pk), '[]') FROM (${providerRows} WHERE bp.application_pk = a.pk) o) AS backchannel_providers_obj,
    NULL AS launch_url, a.open_in_new_tab, a.meta_launch_url, NULL AS meta_icon, a.meta_description, a.meta_publisher,
    a.policy_engine_mode, a.group_name AS "group"`

/** @returns a view whose `launch_url` has its placeholders still; `launchUrlFor` puts a user in */
export const applicationView = (kinds: Registry['kinds']) =>
  ({
    table: 'applications',
    alias: 'a',
    columns,
    joins: '',
    schema: application,
    complete: async (_, rows) =>
      rows.map((row) => {
        const provider = row.provider_obj as ProviderRow | null
        const backchannel = row.backchannel_providers_obj as ProviderRow[]
        return {
          ...row,
          provider_obj: provider === null ? null : toProviderSummary(provider, kinds),
          backchannel_providers_obj: backchannel.map((each) => toProviderSummary(each, kinds)),
          launch_url: row.meta_launch_url === '' ? launchUrlOf(provider, kinds) : row.meta_launch_url,
        }
      }),
  }) satisfies View

const launchUrlOf = (provider: ProviderRow | null, kinds: Registry['kinds']): string | null =>
  provider === null ? null : (kinds.get(provider.kind)?.provider.launchUrl(provider.settings) ?? null)

/** The launch URL for this user: `%(username)s` and its like are put in, so that they can change nothing else of it. */
export function launchUrlFor(user: Row, template: unknown): string | null {
  if (typeof template !== 'string') return null
  return template.replace(/%\(([^)]*)\)s/g, (placeholder, member: string) =>
    launchUrlMembers.includes(member) ? encodeURIComponent(String(user[member])) : placeholder,
  )
}
