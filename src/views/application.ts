import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { policyEngineModes } from '../models/application.ts'
import type { Registry } from '../models/registry.ts'
import { launchUrlFields } from '../models/urls.ts'
import type { Actor } from '../permissions.ts'
import { launchUrlOf, providerSummary, providerSummaryArgs, showsEmbedded, toProviderSummary } from './provider.ts'
import { schemaName } from './schema-names.ts'
import { originSchemas, readMakers, toOrigin } from './stored.ts'
import { readUsers, type User } from './user.ts'
import { inOrder, type Reading, type View } from './view.ts'

/** An application with its providers. */

const launchUrlExample = 'https://grafana.example.com/login/generic_oauth'

export const application = z
  .object({
    pk: z.guid(),
    name: withExample(z.string(), 'Grafana'),
    slug: withExample(z.string(), 'grafana'),
    provider: providerSummary.shape.pk.nullable(),
    provider_obj: providerSummary.nullable(),
    backchannel_providers: withExample(z.array(z.int()), []),
    backchannel_providers_obj: withExample(z.array(providerSummary), []),
    launch_url: withExample(z.string().nullable(), launchUrlExample, 'For this user: its placeholders are filled in.'),
    open_in_new_tab: z.boolean(),
    meta_launch_url: withExample(z.string(), launchUrlExample),
    meta_icon: withExample(z.string().nullable(), null),
    meta_description: withExample(z.string(), 'Dashboards of the platform team'),
    meta_publisher: withExample(z.string(), 'Grafana Labs'),
    policy_engine_mode: withExample(z.enum(policyEngineModes).meta({ title: 'PolicyEngineMode' }), 'any'),
    group: withExample(z.string(), 'Monitoring'),
  })
  .meta({ id: 'Application' })

export const applicationInclude = {
  provider: providerSummaryArgs,
  backchannelProviders: { select: { provider: providerSummaryArgs }, orderBy: { providerPk: 'asc' } },
} satisfies Prisma.ApplicationInclude

type ApplicationRow = Prisma.ApplicationGetPayload<{ include: typeof applicationInclude }>

/**
 * @param user the user for whom its launch URL is; undefined: its placeholders stay
 * @param actor the caller: providers of owners that it may not see are shown by their keys only
 */
export function toApplication(
  stored: ApplicationRow,
  { kinds, user, actor }: { kinds: Registry['kinds']; user: User | undefined; actor: Actor },
): z.output<typeof application> {
  const backchannel = stored.backchannelProviders.map(({ provider }) => provider)
  const row = { ...stored, provider: stored.provider && showsEmbedded(actor, stored.provider) ? stored.provider : null }
  const launchUrl = launchTemplate(row, kinds)
  return {
    pk: row.pk,
    name: row.name,
    slug: row.slug,
    provider: row.providerPk,
    provider_obj: row.provider && toProviderSummary(row.provider, kinds, actor),
    backchannel_providers: backchannel.map(({ pk }) => pk),
    backchannel_providers_obj: backchannel
      .filter((provider) => showsEmbedded(actor, provider))
      .map((provider) => toProviderSummary(provider, kinds, actor)),
    launch_url: launchUrl && user ? withUser(launchUrl, user) : launchUrl,
    open_in_new_tab: row.openInNewTab,
    meta_launch_url: row.metaLaunchUrl,
    meta_icon: null,
    meta_description: row.metaDescription,
    meta_publisher: row.metaPublisher,
    policy_engine_mode: row.policyEngineMode,
    group: row.group,
  }
}

const launchTemplate = (row: ApplicationRow, kinds: Registry['kinds']): string | null =>
  row.metaLaunchUrl || (row.provider && launchUrlOf(row.provider, kinds))

/** Fills in `%(username)s` and other placeholders, encoded: a user's name can change no other part of the URL. */
const withUser = (template: string, user: User): string =>
  template.replace(/%\(([^)]*)\)s/g, (placeholder, field: string) =>
    launchUrlFields.includes(field) ? encodeURIComponent(String(user[field as keyof User])) : placeholder,
  )

/** An application as its list shows it: with its creator, and with its launch URL for the caller. */
export const applicationView = (kinds: Registry['kinds']) =>
  ({
    model: 'Application',
    schema: application.extend(originSchemas).meta({ id: schemaName('read_application') }),
    async *read(tx: Tx, keys: readonly string[], { uidOf, actor }: Reading) {
      const found = await tx.application.findMany({ where: { pk: { in: [...keys] } }, include: applicationInclude })
      const rows = inOrder(keys, found, ({ pk }) => pk)
      const makers = await readMakers(tx, rows, actor)
      const isForUser = rows.some((row) => launchTemplate(row, kinds)?.includes('%('))
      const users = await readUsers(tx, isForUser && actor.pk !== null ? [actor.pk] : [], { uidOf, actor })
      const user = users.get(actor.pk ?? 0)
      yield rows.map((row) => ({ ...toApplication(row, { kinds, user, actor }), ...toOrigin(row, makers) }))
    },
  }) satisfies View<'Application'>
