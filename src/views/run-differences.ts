import { isDeepStrictEqual } from 'node:util'
import type { Change } from '../apply/changes.ts'
import type { Db } from '../db/client.ts'
import { type Blueprint, type Entry, Find, KeyOf } from '../document/document.ts'
import { mask } from '../document/mask.ts'
import { Problem } from '../errors.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { isSame } from '../plan/same-value.ts'
import { documentOf, type FormerRun, readFormerRun } from '../runs/documents.ts'
import { mayReadRun } from '../runs/options.ts'
import type { Opening } from './one-run.ts'

/** The difference between the documents of a run and of an earlier one. Values are masked, as a run shows them. */

export type DocumentDifference = {
  /** The changes of each entry that is added, removed or changed. */
  readonly changes: readonly Change[]
  /** The settings of a document beside its entries: its owner, whether it prunes. */
  readonly settings: Change['fields']
}

/**
 * @returns why they cannot be compared, when one of them has no document any more
 * @throws {Problem} `not_found` when the caller may not see both
 */
export async function readDocumentDifference(
  db: Db,
  { registry, keyring }: Opening,
  { id, earlier }: { readonly id: string; readonly earlier: string },
  actor: Actor,
): Promise<DocumentDifference | string> {
  const [later, former] = await Promise.all([id, earlier].map((each) => readFormerRun(db, each)))
  if (!later || !former || ![later, former].every((run) => mayReadRun(run, actor)))
    throw new Problem('not_found', 'There is no such run.')
  try {
    const [to, from] = [await open(later), await open(former)]
    return { changes: entriesOf(from.blueprint, to.blueprint, registry), settings: fieldsBetween(from.said, to.said) }
  } catch (error) {
    if (error instanceof Problem && error.code === 'conflict') return error.message
    throw error
  }

  async function open(run: FormerRun) {
    const { blueprint, conditions } = await documentOf(db, keyring, run)
    const { owner, replaceProvider, prune, reset } = conditions
    const said = { owner, replace_provider: replaceProvider, prune, reset, labels: blueprint.metadata.labels ?? null }
    return { blueprint, said: { raw: said, shown: said } }
  }
}

/** A value as it is, and as it is shown. */
type Both = { readonly raw: Readonly<Record<string, unknown>>; readonly shown: Readonly<Record<string, unknown>> }
type Sided = Both & Pick<Change, 'model' | 'key'>

function entriesOf(from: Blueprint, to: Blueprint, registry: Registry): Change[] {
  const [before, after] = [byObject(from, registry), byObject(to, registry)]
  const removed = [...before].flatMap(([id, entry]): Change[] =>
    after.has(id) ? [] : [changeOf(entry, 'delete', fieldsBetween(entry, nothing))],
  )
  const others = [...after].flatMap(([id, entry]): Change[] => {
    const earlier = before.get(id)
    const fields = fieldsBetween(earlier ?? nothing, entry, registry.byName(entry.model))
    if (earlier === undefined) return [changeOf(entry, 'create', fields)]
    return Object.keys(fields).length === 0 ? [] : [changeOf(entry, 'update', fields)]
  })
  return [...removed, ...others]
}

const nothing: Both = { raw: {}, shown: {} }

const changeOf = ({ model, key }: Sided, action: Change['action'], fields: Change['fields']): Change => ({
  model,
  key,
  action,
  fields,
})

/** Entries by their objects. A document may name an object twice: the second is compared with the second. */
function byObject(blueprint: Blueprint, registry: Registry): Map<string, Sided> {
  const masked = mask(blueprint, registry).entries
  const found = new Map<string, Sided>()
  for (const [index, entry] of blueprint.entries.entries()) {
    const key = shownOf(entry.identifiers) as Change['key']
    let id = JSON.stringify([entry.model, key])
    while (found.has(id)) id += '+'
    found.set(id, { model: entry.model, key, raw: saidBy(entry), shown: saidBy(masked[index] ?? entry) })
  }
  return found
}

/** The members of an entry beside its fields are in brackets: a field may have the same name. */
const saidBy = ({ attrs, state, was, owner, conditions }: Entry): Readonly<Record<string, unknown>> => ({
  ...attrs,
  ...(state !== 'present' && { '(state)': state }),
  ...(was !== undefined && { '(was)': was }),
  ...(owner !== undefined && { '(owner)': owner }),
  ...(conditions !== undefined && { '(conditions)': conditions }),
})

function fieldsBetween(from: Both, to: Both, model?: Model): Change['fields'] {
  const fields: Change['fields'] = {}
  for (const name of new Set([...Object.keys(from.raw), ...Object.keys(to.raw)])) {
    if (isSame(model?.fields.get(name), from.raw[name], to.raw[name])) continue
    fields[name] =
      isSecret(from, name) || isSecret(to, name) ? 'changed' : { from: sideOf(from, name), to: sideOf(to, name) }
  }
  return fields
}

const isSecret = ({ raw, shown }: Both, name: string): boolean => !isDeepStrictEqual(raw[name], shown[name])

const sideOf = ({ shown }: Both, name: string): unknown => shownOf(shown[name] ?? null)

/** Shows tags as a document has them. */
function shownOf(value: unknown): unknown {
  if (value instanceof KeyOf) return `!KeyOf ${value.id}`
  if (value instanceof Find) return `!Find ${value.model} ${JSON.stringify(shownOf(value.identifiers))}`
  if (Array.isArray(value)) return value.map(shownOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shownOf(each)]))
}
