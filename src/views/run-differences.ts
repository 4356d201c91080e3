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
    return { changes: compare(from.entries, to.entries, registry), settings: fieldsBetween(from.settings, to.settings) }
  } catch (error) {
    if (error instanceof Problem && error.code === 'conflict') return error.message
    throw error
  }

  async function open(run: FormerRun) {
    const { blueprint, conditions } = await documentOf(db, keyring, run)
    const { owner, replaceProvider, prune, reset } = conditions
    const { labels = null } = blueprint.metadata
    const settings = { owner, replace_provider: replaceProvider, prune, reset, labels }
    return { entries: byObject(blueprint, registry), settings: { raw: settings, masked: settings } }
  }
}

/** Fields by name. What is not the same in both is a secret, of which only a change is shown. */
type Said = { readonly raw: Readonly<Record<string, unknown>>; readonly masked: Readonly<Record<string, unknown>> }
const nothing: Said = { raw: {}, masked: {} }

/** The objects of a document, each under an id that it has in both. */
type Side = ReadonlyMap<string, Said & Pick<Change, 'model' | 'key'>>

/** Compares two sides. An object that is only in `to` is created. Those that are deleted come first. */
function compare(from: Side, to: Side, registry: Registry): Change[] {
  const all = new Map([...from].filter(([id]) => !to.has(id)).concat([...to]))
  return [...all].flatMap(([id, { model, key }]): Change[] => {
    const [before, after] = [from.get(id), to.get(id)]
    const fields = fieldsBetween(before ?? nothing, after ?? nothing, registry.byName(model))
    const action = before === undefined ? 'create' : after === undefined ? 'delete' : 'update'
    return action === 'update' && Object.keys(fields).length === 0 ? [] : [{ model, key, action, fields }]
  })
}

function fieldsBetween(from: Said, to: Said, model?: Model): Change['fields'] {
  const fields: Change['fields'] = {}
  for (const name of new Set([...Object.keys(from.raw), ...Object.keys(to.raw)])) {
    if (isSame(model?.fields.get(name), from.raw[name], to.raw[name])) continue
    const isSecret = [from, to].some(({ raw, masked }) => !isDeepStrictEqual(raw[name], masked[name]))
    fields[name] = isSecret ? 'changed' : { from: shownOf(from.raw[name] ?? null), to: shownOf(to.raw[name] ?? null) }
  }
  return fields
}

/** Entries by their objects. A document may name an object twice: the second is compared with the second. */
function byObject(blueprint: Blueprint, registry: Registry): Side {
  const masked = mask(blueprint, registry).entries
  const found = new Map<string, Said & Pick<Change, 'model' | 'key'>>()
  for (const [index, entry] of blueprint.entries.entries()) {
    const key = shownOf(entry.identifiers) as Change['key']
    let id = JSON.stringify([entry.model, key])
    while (found.has(id)) id += '+'
    found.set(id, { model: entry.model, key, raw: saidBy(entry), masked: saidBy(masked[index] ?? entry) })
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

/** Shows tags as a document has them. */
function shownOf(value: unknown): unknown {
  if (value instanceof KeyOf) return `!KeyOf ${value.id}`
  if (value instanceof Find) return `!Find ${value.model} ${JSON.stringify(shownOf(value.identifiers))}`
  if (Array.isArray(value)) return value.map(shownOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shownOf(each)]))
}
