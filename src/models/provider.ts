import { z } from 'zod'
import { defineModel, type Field, type Model, type ModelDeclaration, type Values } from './define.ts'
import { name, reference, references } from './fields.ts'

/** The declaration of a provider kind, without the parts that all kinds share. */
export type ProviderDeclaration = {
  /** `oauth2`; the file has the same name. */
  kind: string
  /** `OAuth2/OpenID Provider`; the plural adds an s. */
  verboseName: string
  /** The kind that most applications take: descriptions show it first. */
  usual?: true
  /** Whether it may be one of an application's backchannel providers; `only`: no user logs in through it. */
  backchannel?: true | 'only'
  /** Set for kinds by which the service itself syncs. Users log in through the others, which have three fields of flows. */
  flows?: 'none'
  /** Whether clients request its property mappings by a scope. */
  hasScopes?: true
  /** The fields of this kind only. */
  settings: z.ZodObject
  /** Fields with a column of their own, by column. */
  columns?: Readonly<Record<string, string>>
  unique?: readonly string[]
  rules?: ModelDeclaration['rules']
  /**
   * The rows that a reference takes, by field, if they are not the usual ones: designations of a flow, else the one in the
   * field's name; kinds of property mappings, else the provider's own.
   */
  fits?: Readonly<Record<string, readonly string[]>>
  /** Its names in other services of this API family, for `gatewright import`. */
  elsewhere?: Elsewhere
  /** The launch URL that an application gets from its provider when it has none of its own. */
  launchUrl?: (values: Values) => string | null
}

export type Elsewhere = {
  /** The kind in the names of its models, if it is another name. */
  readonly kind?: string
  /** The title in those of its shipped property mappings: `theirs default SAML Mapping: Email`. */
  readonly title: string
  /** The property mappings that both services ship: `managed` ends in these names. */
  readonly shipped: readonly string[]
}

export type ProviderModel = Model & {
  readonly provider: Readonly<Omit<ProviderDeclaration, 'backchannel'>> & {
    readonly backchannel: boolean | 'only'
    /** The name of the form that edits it. */
    readonly component: string
    readonly launchUrl: (values: Values) => string | null
  }
}

const flow = (designation: string) =>
  reference('flow', { only: { column: 'designation', values: [designation] }, holds: true })

const flowFields = {
  authentication_flow: flow('authentication').nullable().default(null),
  authorization_flow: flow('authorization'),
  invalidation_flow: flow('invalidation').nullable().default(null),
}

const readOnly = [
  'component',
  'assigned_application_slug',
  'assigned_application_name',
  'assigned_backchannel_application_slug',
  'assigned_backchannel_application_name',
  'verbose_name',
  'verbose_name_plural',
  'meta_model_name',
]

/** Declares a provider kind, in a file of its own in `models/providers/`, which is found at start. */
export function defineProvider(declaration: ProviderDeclaration): ProviderModel {
  const { kind, settings, columns, rules, unique, fits = {} } = declaration
  const flows = declaration.flows === 'none' ? {} : flowFields
  const model = defineModel({
    name: `service_providers_${kind}.${kind}provider`,
    displayName: `provider ${kind}`,
    target: 'provider',
    table: 'providers',
    key: 'integer',
    identifiers: [['name']],
    attrs: z.object({
      name: name(),
      ...flows,
      property_mappings: references('propertymapping').default([]),
      ...settings.shape,
    }),
    columns: { ...Object.fromEntries(['name', ...Object.keys(flows)].map((field) => [field, field])), ...columns },
    discriminator: { kind },
    storedInJson: true,
    uuid: true,
    isLabelled: true,
    referenceRows: {
      table: 'provider_references',
      own: 'provider_pk',
      columns: {
        propertymapping: { name: 'property_mapping_pk', key: 'uuid' },
        certificatekeypair: { name: 'certificate_key_pair_pk', key: 'uuid' },
        group: { name: 'group_pk', key: 'uuid' },
        flow: { name: 'flow_pk', key: 'uuid' },
        role: { name: 'role_pk', key: 'uuid' },
        user: { name: 'user_pk', key: 'integer' },
        application: { name: 'application_pk', key: 'uuid' },
        provider: { name: 'other_provider_pk', key: 'integer' },
      },
    },
    readOnly,
    ...(unique && { unique }),
    ...(rules && { rules }),
  })
  const fields = new Map([...model.fields].map(([name, field]) => [name, withWhatFits(kind, field, fits[name])]))
  const unrestricted = Object.keys(fits).filter((name) => fields.get(name)?.reference?.only === undefined)
  if (unrestricted.length > 0) throw new Error(`${model.name}: ${unrestricted.join(', ')} takes all rows there are`)
  const component = `service-provider-${kind.replaceAll('_', '-')}-form`
  return { ...model, fields, provider: { backchannel: false, component, launchUrl: () => null, ...declaration } }
}

/** Restricts a provider's property mappings to its own kind, in all fields, unless its declaration has others. */
function withWhatFits(kind: string, field: Field, declared: readonly string[] | undefined): Field {
  const { reference } = field
  const usual = reference?.target === 'propertymapping' ? { column: 'kind', values: [kind] } : reference?.only
  if (reference === undefined || usual === undefined) return field
  return { ...field, reference: { ...reference, only: { ...usual, ...(declared && { values: declared }) } } }
}
