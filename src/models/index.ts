import { readdir } from 'node:fs/promises'
import { type Permission, permissionsOf, specialPermissions } from '../permissions.ts'
import application from './application.ts'
import certificateKeyPair from './certificate-key-pair.ts'
import type { Family, Model } from './define.ts'
import flow from './flow.ts'
import group from './group.ts'
import propertyMapping from './property-mapping.ts'
import type { ProviderModel } from './provider.ts'
import { defineRole } from './role.ts'
import token from './token.ts'
import totpDevice from './totp-device.ts'
import user from './user.ts'
import userConsent from './user-consent.ts'

/** Every model of this installation, known once at start. */
export type Registry = {
  byName(name: string): Model | undefined
  readonly models: readonly Model[]
  /** What references may name, by family. */
  readonly families: ReadonlyMap<string, Family>
  readonly kinds: ReadonlyMap<string, ProviderModel>
  /** The names that `provider_model` may be. */
  readonly providerModels: readonly string[]
}

const plainModels: readonly Model[] = [
  ...[flow, propertyMapping, certificateKeyPair],
  ...[group, user, token, totpDevice],
  ...[application, userConsent],
]

/**
 * Finds the provider kinds and builds the registry.
 *
 * @throws when a file in `providers/` is no kind of its name, two models share a name, or a reference leads nowhere
 */
export async function loadRegistry(): Promise<Registry> {
  return buildRegistry(plainModels, await loadKinds(new URL('./providers/', import.meta.url)))
}

/** The registry of given models; roles hold the permissions that these make up. */
export function buildRegistry(plain: readonly Model[], kinds: readonly ProviderModel[]): Registry {
  const role = defineRole(
    permissionsFor(['role', ...plain.map(({ resource }) => resource), ...kinds.map(({ resource }) => resource)]),
  )
  const models: readonly Model[] = [role, ...plain, ...kinds]
  const byName = new Map<string, Model>()
  for (const model of models) {
    if (byName.has(model.name)) throw new Error(`Two models are called ${model.name}.`)
    byName.set(model.name, model)
  }
  const families = familiesOf(models, kinds)
  for (const model of models) checkReferences(model, families)
  return {
    byName: (name) => byName.get(name),
    models,
    families,
    kinds: new Map(kinds.map((model) => [model.provider.kind, model])),
    providerModels: kinds.map(({ name }) => name),
  }
}

function familiesOf(models: readonly Model[], kinds: readonly ProviderModel[]): Map<string, Family> {
  const families = new Map<string, Family>()
  for (const { name, family, table, key } of models) {
    const there = families.get(family)
    if (there !== undefined && (there.table !== table || there.key !== key)) {
      throw new Error(`${name}: the family ${family} has the table ${there.table} with ${there.key} keys.`)
    }
    families.set(family, { table, key })
  }
  const backchannel = kinds.filter(({ provider }) => provider.backchannel).map(({ provider }) => provider.kind)
  const providers = families.get('provider')
  if (providers !== undefined)
    families.set('backchannel provider', { ...providers, only: { column: 'kind', values: backchannel } })
  return families
}

function checkReferences(model: Model, families: ReadonlyMap<string, Family>): void {
  for (const { name, reference, place } of model.members.values()) {
    if (reference === undefined) {
      if (place.in === 'link') throw new Error(`${model.name}: ${name} is a link, but no reference.`)
      continue
    }
    if (!families.has(reference.family))
      throw new Error(`${model.name}: ${name} refers to ${reference.family}, which no model is.`)
    // Only a foreign key, in a column, a link or the mirror, keeps the referenced row from vanishing.
    const isKept = place.in === 'column' || place.in === 'link' || model.mirror?.columns[reference.family] !== undefined
    if (!isKept)
      throw new Error(
        `${model.name}: ${name} refers to ${reference.family}, which ${model.mirror?.table ?? model.table} has no column for.`,
      )
  }
}

/** The closed list of permission names. */
export const permissionNames = ({ models }: Pick<Registry, 'models'>): readonly Permission[] =>
  permissionsFor(models.map(({ resource }) => resource))

const permissionsFor = (resources: readonly string[]): Permission[] =>
  [...specialPermissions, ...[...new Set(resources)].flatMap(permissionsOf)].sort()

/** Each file of the folder is the provider kind that it is named after. */
export async function loadKinds(folder: URL): Promise<ProviderModel[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.ts')).sort()
  return Promise.all(files.map((file) => loadKind(new URL(file, folder), file.slice(0, -'.ts'.length))))
}

async function loadKind(url: URL, kind: string): Promise<ProviderModel> {
  const loaded: { default?: unknown } = await import(url.href)
  const model = loaded.default
  if (!isProviderModel(model))
    throw new Error(
      `models/providers/${kind}.ts does not export a provider kind: export default defineProvider({ ... }).`,
    )
  if (model.provider.kind !== kind)
    throw new Error(
      `models/providers/${kind}.ts declares the kind ${model.provider.kind}: a file is named after its kind.`,
    )
  return model
}

const isProviderModel = (value: unknown): value is ProviderModel =>
  typeof value === 'object' &&
  value !== null &&
  'provider' in value &&
  'members' in value &&
  value.members instanceof Map
