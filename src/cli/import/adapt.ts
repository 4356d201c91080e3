import { Find } from '../../document/document.ts'
import { isTag } from '../../document/tags.ts'
import { isObject, type JsonObject } from '../../json-object.ts'
import type { Model } from '../../models/define.ts'
import { fromLines } from '../../models/fields.ts'
import type { Registry } from '../../models/registry.ts'
import { type Draft, fieldsOf } from './draft.ts'
import { byManaged, implicitConsent, isForLogin, mappingModel, type OwnModel, ownModel } from './names.ts'
import { type Known, labelOf, withOurNames } from './references.ts'

/** An entry of another service of this API family, in the form that it has here. */

export type Adapted = {
  readonly entry: JsonObject
  /** What it is without, each with the reason. */
  readonly leftOut: readonly string[]
}

/** What the document has itself, by what other entries look it up. */
export function knownIn(drafts: readonly Draft[], registry: Registry): Known {
  const keys = new Map<string, string>()
  const flows = new Set<string>()
  const scopes = new Map<string, string>()
  const managedHere = new Set<string>()
  for (const { id, sent: entry } of drafts) {
    if (!isObject(entry) || typeof entry.model !== 'string') continue
    const { model, kind } = ownModel(entry.model, registry) ?? {}
    const { pk, slug, scope_name: scope, name, managed } = { ...fieldsOf(entry.attrs), ...fieldsOf(entry.identifiers) }
    if (model !== undefined && pk !== undefined) keys.set(labelOf(model.table, pk), id)
    if (model?.target === 'flow' && typeof slug === 'string') flows.add(slug)
    if (kind === undefined || (typeof managed === 'string' && typeof byManaged(managed, registry) === 'string'))
      continue
    if (typeof managed === 'string') managedHere.add(managed)
    if (typeof scope === 'string' && typeof name === 'string') scopes.set(scope, name)
  }
  return { registry, flows, scopes, keys, managed: managedHere }
}

/** @param own what its model is here */
export function adapted(value: JsonObject, own: OwnModel, known: Known): Adapted {
  const { permissions, identifiers, attrs, ...rest } = value
  const leftOut: string[] = []
  const isGiven = Array.isArray(permissions) && permissions.length > 0
  if (isGiven) leftOut.push('permissions: they are given by roles and groups here')
  const written = {
    ...rest,
    model: own.model.name,
    ...(identifiers !== undefined && { identifiers }),
    attrs: attrs ?? {},
    ...(permissions !== undefined && !isGiven && { permissions }),
  }
  const entry = fieldsOf(withOurNames(written, known))
  if (!isObject(entry.identifiers) || isTag(entry.identifiers) || !isObject(entry.attrs) || isTag(entry.attrs))
    return { entry, leftOut }
  const named = own.model.name === mappingModel ? asMapping(entry, own.kind, known, leftOut) : entry
  const found = byOwnIdentifiers(own.model, fieldsOf(named.identifiers), fieldsOf(named.attrs))
  return { entry: { ...named, ...found, attrs: ownValues(own.model, found.attrs, leftOut, known) }, leftOut }
}

/** The kind is a field here. What is shipped here too stays as it is: its expression is in another language there. */
function asMapping(entry: JsonObject, kind: string | undefined, { registry }: Known, leftOut: string[]): JsonObject {
  const identifiers = fieldsOf(entry.identifiers)
  const attrs: JsonObject = { ...fieldsOf(entry.attrs), ...(kind !== undefined && { kind }) }
  const { managed, name, expression } = { ...attrs, ...identifiers }
  const own = typeof managed === 'string' ? byManaged(managed, registry) : undefined
  if (typeof own !== 'string') return { ...entry, identifiers, attrs }
  leftOut.push(`its fields where it stands: it is shipped here as ${own}, and stays as it is`)
  return {
    ...entry,
    ...(entry.state !== 'absent' && { state: 'created' }),
    identifiers: { managed: own },
    attrs: { name, kind, ...(expression !== undefined && { expression }) },
  }
}

/** Rows are found by other fields there: by a key, an application by its name, a token by its user as well. */
function byOwnIdentifiers(model: Model, { pk: _, ...identifiers }: JsonObject, attrs: JsonObject) {
  const all = { ...attrs, ...identifiers }
  const within = (fields: JsonObject) =>
    model.identifiers.find((set) => set.every((name) => (fields[name] ?? null) !== null))
  const set = within(identifiers) ?? within(all)
  if (set === undefined) return { identifiers, attrs }
  const isOwn = (name: string) => set.includes(name) || !model.fields.has(name)
  const others = Object.entries(identifiers).filter(([name]) => !isOwn(name))
  const isFromAttrs = !set.every((name) => Object.hasOwn(identifiers, name))
  const kept = Object.entries(attrs).filter(([name]) => !isFromAttrs || !set.includes(name))
  return {
    identifiers: {
      ...Object.fromEntries(Object.entries(identifiers).filter(([name]) => isOwn(name))),
      ...Object.fromEntries(set.map((name) => [name, all[name]])),
    },
    attrs: { ...Object.fromEntries(others), ...Object.fromEntries(kept) },
  }
}

/** Values that mean the same in another form, and those that mean nothing here. */
function ownValues(model: Model, attrs: JsonObject, leftOut: string[], known: Known): JsonObject {
  const own: Record<string, unknown> = { ...attrs }
  if (own.meta_launch_url === 'blank://blank') {
    delete own.meta_launch_url
    leftOut.push('meta_launch_url: an application cannot be hidden by it here')
  }
  if (model.target === 'group' && Array.isArray(own.parents)) {
    const { parents, ...others } = own
    const [parent = null, ...more] = parents
    if (more.length === 0) return ownValues(model, { parent, ...others }, leftOut, known)
    delete own.parents
    leftOut.push(`parents: a group has one parent here, and not ${parents.length}`)
  }
  const { redirect_uris: uris } = own
  if (typeof uris === 'string' || Array.isArray(uris)) own.redirect_uris = [uris].flat().flatMap(fromLines)
  if (model.resource === 'role' && Array.isArray(own.permissions))
    own.permissions = ownPermissions(own.permissions, known, leftOut)
  const flow = own.authorization_flow
  const fits = model.fields.get('authorization_flow')?.reference?.only?.values.includes('authentication')
  if (
    !fits &&
    flow instanceof Find &&
    isForLogin(String(flow.identifiers.slug)) &&
    !known.flows.has('default-authentication')
  ) {
    own.authentication_flow ??= flow
    own.authorization_flow = new Find(flow.model, { slug: implicitConsent })
    leftOut.push(
      `authorization_flow: ${flow.identifiers.slug} is for logging in. ${implicitConsent} stands in its place`,
    )
  }
  return own
}

/** Where a logout returns to is not where a login may: as a redirect URI it would take codes. */
export function notForLogins(uri: unknown): string | undefined {
  const { redirect_uri_type: type } = fieldsOf(uri)
  return type === undefined || type === forLogins ? undefined : `it is for ${String(type)}, and not for logins`
}

export const forLogins = 'authorization'

/** `theirs_core.view_application` */
function ownPermissions(sent: readonly unknown[], { registry }: Known, leftOut: string[]): unknown[] {
  const schema = registry.byName('service_rbac.role')?.fields.get('permissions')?.schema
  const own = new Set<unknown>()
  let unknown = 0
  for (const each of sent) {
    const name = typeof each === 'string' ? each.slice(each.indexOf('.') + 1) : each
    if (isTag(each) || schema?.safeParse([name]).success === true) own.add(name)
    else unknown += 1
  }
  if (unknown > 0) leftOut.push(`permissions: ${unknown} of ${sent.length} are for what is not here`)
  return [...own]
}
