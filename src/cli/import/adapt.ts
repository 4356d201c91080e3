import { Find } from '../../document/document.ts'
import { isTag } from '../../document/tags.ts'
import { isObject, type JsonObject } from '../../json-object.ts'
import type { Model } from '../../models/define.ts'
import { fromLines } from '../../models/fields.ts'
import { regularExpression } from '../../models/patterns.ts'
import type { Registry } from '../../models/registry.ts'
import { type Draft, fieldsOf } from './draft.ts'
import { byManaged, implicitConsent, mappingModel, type OwnModel, tableOf } from './names.ts'
import { type Known, labelOf, withOurNames } from './references.ts'

/** Converts an entry of another service of this API family to the form that it has here. */

/** The entries of the document, by the values with which other entries look them up. */
export function knownEntries(drafts: readonly Draft[], registry: Registry): Known['entries'] {
  const entries = new Map<string, Draft[]>()
  for (const draft of drafts) {
    const table = tableOf(draft.model, registry)
    if (table === undefined || draft.state === 'absent') continue
    entries.set(draft.id, [draft])
    for (const [name, value] of Object.entries(draft.fields))
      if (!isObject(value)) entries.getOrInsert(labelOf(table, name, value), []).push(draft)
  }
  return entries
}

/**
 * @param own the model that it has here
 * @param leftOut gets the parts that are left out, each with the reason
 */
export function adapted(value: JsonObject, own: OwnModel, known: Known, leftOut: string[]): JsonObject {
  const { permissions, identifiers, attrs, ...rest } = value
  const isGiven = Array.isArray(permissions) && permissions.length > 0
  if (isGiven) leftOut.push('permissions: they are given by roles and groups here')
  const entry = {
    ...fieldsOf(withOurNames(rest, { ...known, asks: true })),
    model: own.model.name,
    ...(identifiers !== undefined && { identifiers: withOurNames(identifiers, known) }),
    attrs: withOurNames(attrs ?? {}, known),
    ...(permissions !== undefined && !isGiven && { permissions }),
  }
  if (!isObject(entry.identifiers) || isTag(entry.identifiers) || !isObject(entry.attrs) || isTag(entry.attrs))
    return entry
  const named = own.model.name === mappingModel ? asMapping(entry, own.kind, known, leftOut) : entry
  const found = byOwnIdentifiers(own.model, fieldsOf(named.identifiers), fieldsOf(named.attrs))
  return { ...named, ...found, attrs: ownValues(own.model, found.attrs, leftOut, known) }
}

/** Converts a property mapping, whose kind is a field here. A shipped one is kept: its expression has another language there. */
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

/** Converts identifiers. Other fields find rows there: a key, the name of an application, the user of a token as well. */
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

/** Converts values that have another form here, and leaves out those without a meaning. */
function ownValues(model: Model, attrs: JsonObject, leftOut: string[], known: Known): JsonObject {
  const own: Record<string, unknown> = { ...attrs }
  if (own.meta_launch_url === 'blank://blank') {
    delete own.meta_launch_url
    leftOut.push('meta_launch_url: an application cannot be hidden by it here')
  }
  if (model.target === 'group' && Array.isArray(own.parents)) {
    const { parents } = own
    delete own.parents
    if (parents.length < 2) own.parent ??= parents[0] ?? null
    else leftOut.push(`parents: a group has one parent here, and not ${parents.length}`)
  }
  const { redirect_uris: uris } = own
  if (typeof uris === 'string' || Array.isArray(uris)) own.redirect_uris = [uris].flat().flatMap(fromLines)
  if (model.resource === 'role' && Array.isArray(own.permissions))
    own.permissions = ownPermissions(own.permissions, known, leftOut)
  if (typeof own.skip_path_regex === 'string') {
    const whys = new Map(own.skip_path_regex.split(/\r?\n/).map((line) => [line, regularExpression(line)]))
    const kept = [...whys.keys()].filter((line) => whys.get(line) === undefined).join('\n')
    // Each line is a path without a login. A field without any valid line is refused as a whole, and keeps its value.
    if (kept.trim() !== '') own.skip_path_regex = kept
    for (const [line, why] of kept.trim() === '' ? [] : whys) if (why) leftOut.push(`skip_path_regex: ${line}: ${why}`)
  }
  const flow = own.authorization_flow
  const fits = model.fields.get('authorization_flow')?.reference?.only?.values.includes('authentication')
  if (!fits && flow instanceof Find && flow.identifiers.slug === 'default-authentication') {
    own.authentication_flow ??= flow
    own.authorization_flow = new Find(flow.model, { slug: implicitConsent })
    leftOut.push(
      `authorization_flow: ${flow.identifiers.slug} is for logging in. ${implicitConsent} stands in its place`,
    )
  }
  return own
}

/** Leaves out the URIs to which a logout returns: a login may not return there, and a redirect URI would take codes. */
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
  if (unknown > 0)
    leftOut.push(`permissions: ${unknown} of ${sent.length} are for models that Gatewright does not have`)
  return [...own]
}
