import { z } from 'zod'
import { defineModel, type Model, type ModelDeclaration, type Values } from './define.ts'
import { name, reference, references } from './fields.ts'

/** What a provider kind declares; everything that kinds share is added here. */
export type ProviderDeclaration = {
  /** `oauth2`: also the file's name. */
  kind: string
  /** `OAuth2/OpenID Provider`; the plural adds an s. */
  verboseName: string
  /** The name of the form that edits it. */
  component: string
  /** Whether it may be one of an application's backchannel providers. */
  backchannel: boolean
  /** Whether people pass through it: `all` three flow members, or `none` where the service itself speaks to the other side. */
  flows: 'all' | 'none'
  /** The members of this kind alone. */
  settings: z.ZodObject
  /** Members with a column of their own, by column. */
  columns?: Readonly<Record<string, string>>
  unique?: readonly string[]
  rules?: ModelDeclaration['rules']
  /** The launch URL that an application gets from its provider when it has none of its own. */
  launchUrl?: (values: Values) => string | null
}

export type ProviderModel = Model & {
  readonly provider: Pick<ProviderDeclaration, 'kind' | 'verboseName' | 'component' | 'backchannel'> & {
    readonly launchUrl: (values: Values) => string | null
  }
}

const flowMembers = {
  authentication_flow: reference('flow').nullable().default(null),
  authorization_flow: reference('flow'),
  invalidation_flow: reference('flow').nullable().default(null),
}

/** Members that a provider's answers show and a body may repeat. */
const shown = [
  'pk',
  'component',
  'assigned_application_slug',
  'assigned_application_name',
  'assigned_backchannel_application_slug',
  'assigned_backchannel_application_name',
  'verbose_name',
  'verbose_name_plural',
  'meta_model_name',
]

/** One provider kind: a file of its own in `models/providers/`, found at start. */
export function defineProvider(declaration: ProviderDeclaration): ProviderModel {
  const { kind, settings, flows, columns, rules, unique, launchUrl = () => null } = declaration
  const { verboseName, component, backchannel } = declaration
  const model = defineModel({
    name: `service_providers_${kind}.${kind}provider`,
    noun: `provider ${kind}`,
    resource: `${kind}provider`,
    family: 'provider',
    table: 'providers',
    key: 'integer',
    identifiers: [['name']],
    attrs: z.object({
      name: name(),
      ...(flows === 'all' ? flowMembers : {}),
      property_mappings: references('propertymapping').default([]),
      ...settings.shape,
    }),
    columns: {
      name: 'name',
      ...(flows === 'all' ? Object.fromEntries(Object.keys(flowMembers).map((member) => [member, member])) : {}),
      ...columns,
    },
    fixed: { kind },
    packed: true,
    uuid: true,
    mirror: {
      table: 'provider_references',
      own: 'provider_pk',
      columns: {
        propertymapping: 'property_mapping_pk',
        certificatekeypair: 'certificate_key_pair_pk',
        group: 'group_pk',
      },
    },
    shown,
    ...(unique && { unique }),
    ...(rules && { rules }),
  })
  return { ...model, provider: { kind, verboseName, component, backchannel, launchUrl } }
}
