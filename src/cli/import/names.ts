import type { Model } from '../../models/define.ts'
import type { ProviderModel } from '../../models/provider.ts'
import type { Registry } from '../../models/registry.ts'

/**
 * The names that services of this API family have for models, kinds and shipped objects of this service. Most begin with a word
 * of the maker, which may be any.
 */

export type OwnModel = {
  readonly model: Model
  /** The kind of a property mapping, which is part of its model there. */
  readonly kind?: string
}

export const mappingModel = 'service_mappings.propertymapping'

/**
 * `theirs_flows.flow` is `service_flows.flow`, and `theirs_providers_oauth2.scopemapping` a property mapping of the kind
 * `oauth2`.
 *
 * @returns undefined when there is no such model here
 */
export function ownModel(name: string, registry: Registry): OwnModel | undefined {
  const [, rest = ''] = /^[^_.]+_(.+)$/.exec(name.toLowerCase()) ?? []
  const model = registry.byName(`service_${rest}`)
  if (model !== undefined) return { model }
  const mapping = registry.byName(mappingModel)
  if (rest === 'core.propertymapping' && mapping !== undefined) return { model: mapping }
  const [, theirs = '', what = ''] = /^providers_(\w+)\.(?:\w*)(mapping|provider)$/.exec(rest) ?? []
  const provider = ofKind(theirs, registry)
  if (provider === undefined || mapping === undefined) return undefined
  return what === 'mapping' ? { model: mapping, kind: provider.provider.kind } : { model: provider }
}

/** @param theirs the name of the kind there */
const ofKind = (theirs: string, { kinds }: Registry): ProviderModel | undefined =>
  [...kinds.values()].find(({ provider: { kind, elsewhere } }) => (elsewhere?.kind ?? kind) === theirs)

/** The table of a model's rows, also for `theirs_core.provider` and a provider kind that is unknown here. */
export const tableOf = (name: string, registry: Registry): string | undefined =>
  /^[^_.]+_(core\.|providers_\w+\.\w*)provider$/i.test(name)
    ? registry.targets.get('provider')?.table
    : ownModel(name, registry)?.model.table

/** The flows that are shipped there, by slug, with their counterparts here. */
const flows: Readonly<Record<string, string>> = {
  'default-authentication-flow': 'default-authentication',
  'default-provider-authorization-explicit-consent': 'default-authorization-explicit',
  'default-provider-authorization-implicit-consent': 'default-authorization-implicit',
  'default-invalidation-flow': 'default-invalidation',
  'default-provider-invalidation-flow': 'default-provider-invalidation',
  'default-enrollment-flow': 'default-enrollment',
  'default-source-enrollment': 'default-enrollment',
  'default-recovery-flow': 'default-recovery',
  'default-unenrollment-flow': 'default-unenrollment',
  'default-password-change': 'default-stage-configuration',
  'default-user-settings-flow': 'default-stage-configuration',
  'default-authenticator-static-setup': 'default-stage-configuration',
  'default-authenticator-totp-setup': 'default-stage-configuration',
  'default-authenticator-webauthn-setup': 'default-stage-configuration',
  'default-authenticator-email-setup': 'default-stage-configuration',
}

/** @returns the slug here; undefined for a flow that is not shipped */
export const ownFlow = (slug: string): string | undefined => (Object.hasOwn(flows, slug) ? flows[slug] : undefined)

export const implicitConsent = 'default-authorization-implicit'

/** `managed` of a mapping that is shipped here. */
function shipped({ provider: { kind, elsewhere } }: ProviderModel, name: string): string | null {
  return elsewhere?.shipped.includes(name) === true ? `gatewright/${kind}/${name}` : null
}

/** The kind of a mapping that is shipped here. */
export const kindOf = (managed: string): string | undefined => /^gatewright\/(\w+)\//.exec(managed)?.[1]

/** `managed` of a mapping that is shipped there; null when it is not shipped here, undefined when it is not shipped there. */
export type Shipped = string | null | undefined

/** `theirs.example/providers/oauth2/scope-openid` */
export function byManaged(managed: string, registry: Registry): Shipped {
  const [, theirs = '', name = ''] = /^[^/]+\/providers\/(\w+)\/([\w-]+)$/.exec(managed) ?? []
  const model = ofKind(theirs, registry)
  return theirs === '' ? undefined : model === undefined ? null : shipped(model, name)
}

/** `theirs default SAML Mapping: User ID` */
export function byTitle(title: string, { kinds }: Registry): Shipped {
  const [, theirs = '', name = ''] = /^\S+ default (.+) Mapping: (?:OpenID ')?([^']+)'?$/.exec(title) ?? []
  const model = [...kinds.values()].find(({ provider }) => provider.elsewhere?.title === theirs)
  if (model === undefined) return undefined
  const plain = name.toLowerCase()
  const called = plain === 'user id' ? 'uid' : plain
  return shipped(model, called) ?? shipped(model, `scope-${called}`)
}

/** Finds a shipped mapping by its scope of OAuth2. */
export const byScope = (scope: string, { kinds }: Registry): Shipped =>
  [...kinds.values()].map((model) => shipped(model, `scope-${scope}`)).find((managed) => managed !== null)

/**
 * The name here of a flow, a key pair or a group that is shipped there. The group of superusers has the maker's word, which is
 * the prefix of the model: no other group of admins counts as it.
 *
 * @param theirs the name of the model there
 */
export function ownName(theirs: string, { target }: Model, called: unknown): Shipped {
  if (typeof called !== 'string') return undefined
  if (target === 'flow') return ownFlow(called)
  // Every installation generates a key pair of its own.
  if (target === 'certificatekeypair') return /^\S+ self-signed certificate$/i.test(called) ? ownKeyPair : undefined
  const [maker] = theirs.split('_')
  if (target !== 'group') return undefined
  return called === `${maker} Admins` ? 'gatewright Admins' : called === `${maker} Read-only` ? null : undefined
}

const ownKeyPair = 'Gatewright self-signed'
