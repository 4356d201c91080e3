import { hasOwner, type Permission, permissionsOf, specialPermissions, toReadSecrets } from '../permissions.ts'
import application from './application.ts'
import certificateKeyPair from './certificate-key-pair.ts'
import type { Model, ReferenceTarget } from './define.ts'
import flow from './flow.ts'
import group from './group.ts'
import { loadKinds } from './kinds.ts'
import { definePropertyMapping } from './property-mapping.ts'
import type { ProviderModel } from './provider.ts'
import { defineRole } from './role.ts'
import token from './token.ts'
import totpDevice from './totp-device.ts'
import trustedIssuer from './trusted-issuer.ts'
import user from './user.ts'
import userConsent from './user-consent.ts'

/** All models of this installation, loaded at start. */
export type Registry = {
  byName(name: string): Model | undefined
  readonly models: readonly Model[]
  /** The rows that references may name, by reference target. */
  readonly targets: ReadonlyMap<string, ReferenceTarget>
  readonly kinds: ReadonlyMap<string, ProviderModel>
}

const plainModels = [flow, certificateKeyPair, group, user, token, totpDevice, application, userConsent, trustedIssuer]

let loaded: Promise<Registry> | undefined

/**
 * Finds the provider kinds and builds the registry, once in a process.
 *
 * @throws when a file in `providers/` does not declare the kind it is named after, two models share a name, or a
 *   reference has no target
 */
export function loadRegistry(): Promise<Registry> {
  loaded ??= loadKinds().then((kinds) => {
    const scoped = kinds.flatMap(({ provider: { kind, hasScopes } }) => (hasScopes ? [kind] : []))
    return buildRegistry([...plainModels, definePropertyMapping(scoped)], kinds)
  })
  return loaded
}

/** The registry of the given models. Roles may hold the permissions of these models. */
export function buildRegistry(plain: readonly Model[], kinds: readonly ProviderModel[]): Registry {
  const others = [...plain, ...kinds]
  const role = defineRole(permissionsFor(['role', ...others.map(({ resource }) => resource)]))
  const models: readonly Model[] = [role, ...others]
  const byName = new Map<string, Model>()
  for (const model of models) {
    if (byName.has(model.name)) throw new Error(`Two models are called ${model.name}.`)
    byName.set(model.name, model)
  }
  const targets = targetsOf(models, kinds)
  for (const model of models) checkReferences(model, targets)
  for (const model of models) checkOwners(model)
  return {
    byName: (name) => byName.get(name),
    models,
    targets,
    kinds: new Map(kinds.map((model) => [model.provider.kind, model])),
  }
}

function targetsOf(models: readonly Model[], kinds: readonly ProviderModel[]): Map<string, ReferenceTarget> {
  const targets = new Map<string, ReferenceTarget>()
  for (const { name, target, table, key } of models) {
    const existing = targets.get(target)
    if (existing !== undefined && (existing.table !== table || existing.key !== key))
      throw new Error(
        `${name}: the reference target ${target} has the table ${existing.table} with ${existing.key} keys.`,
      )
    targets.set(target, { table, key, models: models.filter((model) => model.target === target) })
  }
  const providers = targets.get('provider')
  if (providers === undefined) return targets
  const some = (those: readonly unknown[]) => {
    const values = kinds.flatMap(({ provider }) => (those.includes(provider.backchannel) ? provider.kind : []))
    return { ...providers, only: { column: 'kind', values } }
  }
  targets.set('backchannel provider', some([true, 'only']))
  targets.set('provider without a login', some(['only']))
  return targets
}

/** Checks the names of permissions that the owners of a role bind: a permission is one of them by its name, in SQL too. */
function checkOwners({ name, resource, isLabelled }: Model): void {
  if (hasOwner(resource) !== (isLabelled === true))
    throw new Error(
      `${name}: the resource ${resource} ${isLabelled ? 'has' : 'has no'} owners, and its name says otherwise: see hasOwner in src/permissions.ts.`,
    )
}

function checkReferences(model: Model, targets: ReadonlyMap<string, ReferenceTarget>): void {
  for (const { name, reference, storage } of model.fields.values()) {
    if (reference === undefined) {
      if (storage.in === 'link') throw new Error(`${model.name}: ${name} is a link, but no reference.`)
      continue
    }
    const refers = `${model.name}: ${name} refers to ${reference.target}`
    if (!targets.has(reference.target)) throw new Error(`${refers}, which no model is.`)
    // A foreign key keeps the referenced row from being deleted: a column, a link or the reference table must have it.
    const hasForeignKey =
      storage.in === 'column' || storage.in === 'link' || model.referenceRows?.columns[reference.target] !== undefined
    const table = model.referenceRows?.table ?? model.table
    if (!hasForeignKey) throw new Error(`${refers}, which ${table} has no column for.`)
  }
}

/** The closed list of permission names. */
export const permissionNames = ({ models }: Pick<Registry, 'models'>): readonly Permission[] =>
  permissionsFor(models.map(({ resource }) => resource))

/** Secrets of users are for no other server. */
const hasSecrets = (resource: string): boolean => resource === 'certificatekeypair' || resource.endsWith('provider')

const permissionsFor = (all: readonly string[]): Permission[] => {
  const resources = [...new Set(all)]
  const toRead = resources.filter(hasSecrets).map(toReadSecrets)
  return [...specialPermissions, ...resources.flatMap(permissionsOf), ...toRead].sort()
}
