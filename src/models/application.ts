import { z } from 'zod'
import { defineModel } from './define.ts'
import { integerReference, integerReferences, name, oneOf, shownLine, shownText, slug, text } from './fields.ts'
import { blankOr } from './syntax.ts'
import { launchUrl } from './urls.ts'

export const policyEngineModes = ['all', 'any'] as const

export default defineModel({
  name: 'service_core.application',
  displayName: 'application',
  table: 'applications',
  key: 'uuid',
  identifiers: [['slug']],
  attrs: z.object({
    name: name(),
    slug: slug(),
    provider: integerReference('provider').nullable().default(null),
    backchannel_providers: integerReferences('backchannel provider').default([]),
    open_in_new_tab: z.boolean().default(false),
    meta_launch_url: text(blankOr(launchUrl)).default(''),
    meta_description: shownText(10_000).default(''),
    meta_publisher: shownLine().default(''),
    policy_engine_mode: oneOf(policyEngineModes, 'PolicyEngineMode').default('any'),
    group: shownLine(255).default(''),
  }),
  columns: { provider: 'provider_pk', group: 'group_name' },
  links: {
    backchannel_providers: {
      table: 'backchannel_providers',
      own: 'application_pk',
      other: 'provider_pk',
      exclusive: true,
    },
  },
  unique: ['provider'],
  claims: ['provider', 'backchannel_providers'],
  yields: { field: 'provider', to: 'backchannel_providers', target: 'provider without a login' },
  isLabelled: true,
  rules({ provider, backchannel_providers }, report) {
    const behind: readonly unknown[] = Array.isArray(backchannel_providers) ? backchannel_providers : []
    if (typeof provider === 'number' && behind.includes(provider))
      report(
        ['backchannel_providers'],
        'invalid_combination',
        'Holds the provider of the application, too: leave it out of one of the two fields.',
      )
  },
  readOnly: ['provider_obj', 'backchannel_providers_obj', 'launch_url'],
  alwaysNull: ['meta_icon'],
})
