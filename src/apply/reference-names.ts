import type { Model, ReferenceTarget } from '../models/define.ts'
import { type Actor, mayNameUser } from '../permissions.ts'
import { mayKnow } from '../plan/effect.ts'
import type { Loader } from '../plan/load.ts'
import { byKey } from '../plan/look.ts'
import { Named } from '../plan/named.ts'
import { nameColumns } from '../plan/references.ts'
import type { Row } from '../plan/statements.ts'
import { keysOf } from '../plan/storage.ts'
import type { World } from '../plan/world.ts'
import type { Change } from './changes.ts'
import type { Finding } from './finding.ts'
import { ownerAfter } from './ownership.ts'

/**
 * The names of the rows to which changed fields refer, in place of their keys. The judge compares keys, and so does the digest of
 * a plan: a flow that is renamed meanwhile is no reason to plan again (docs/adr/0075-changes-show-names.md).
 */

/** A field with more keys than this shows keys. */
const mostNamed = 100
/** A document that changes more references than this shows the keys of the others. */
const mostRead = 5_000

type Fields = Change['fields']
type Key = string | number
type Known = { readonly name: string; readonly model: Model; readonly owner: unknown }

export class ReferenceNames {
  readonly #world: World
  readonly #actor: Actor
  /** The known rows, by table, and key or tag. */
  readonly #known = new Map<string, Known>()

  private constructor(world: World, actor: Actor) {
    this.#world = world
    this.#actor = actor
  }

  /** Reads the names of rows to which updates refer: one statement, and none when all are loaded. */
  static async read(loader: Loader, actor: Actor, findings: readonly Finding[]): Promise<ReferenceNames> {
    const names = new ReferenceNames(loader.world, actor)
    const asked = new Map<string, { readonly target: ReferenceTarget; readonly keys: Set<Key> }>()
    let left = mostRead
    for (const { change, step } of findings) {
      if (change.action !== 'update') continue
      for (const [name, sides] of Object.entries(change.fields)) {
        const target = names.#targetOf(step.model, name)
        const keys = keysIn(sides).filter((key) => !isTag(key))
        if (target === undefined || keys.length > Math.min(mostNamed, left)) continue
        left -= keys.length
        const of = asked.getOrInsertComputed(target.table, () => ({ target, keys: new Set() }))
        for (const key of keys) of.keys.add(key)
      }
    }
    for (const finding of findings) names.#addWritten(finding)
    const there = [...asked.values()].flatMap(({ target, keys }) => {
      const [model] = target.models
      const unknown = [...keys].filter((key) => !names.#known.has(placeOf(target.table, key)))
      return model === undefined ? [] : unknown.map((key) => ({ target, look: byKey(model, key) }))
    })
    await loader.load({ looks: there.map(({ look }) => look) })
    for (const { target, look } of there) for (const row of loader.world.find(look)) names.#addRead(target, row)
    return names
  }

  /** The finding, whose change has names for the keys that the submitter may know. */
  in(finding: Finding): Finding {
    const { change, step, sent, ownership } = finding
    const given = (name: string) => (change.action === 'create' ? namesSent(step, name, sent.get(name)) : undefined)
    return {
      ...finding,
      change: { ...change, fields: this.fields(step.model, change.fields, ownerAfter(ownership, null), given) },
    }
  }

  /**
   * Fields of a row, with names for keys.
   *
   * @param owner the label under which the row is managed
   * @param given the names of the document, by key
   */
  fields(
    model: Model,
    fields: Fields,
    owner: string | null,
    given: (field: string) => ReadonlyMap<Key, string> | undefined = () => undefined,
  ): Fields {
    const named = Object.entries(fields).map(([name, sides]): [string, Fields[string]] => {
      const target = this.#targetOf(model, name)
      if (target === undefined || typeof sides === 'string') return [name, sides]
      const keys = [...new Set(keysIn(sides))]
      if (keys.length > mostNamed) return [name, sides]
      const sent = given(name)
      const found = keys.map((key) => [key, sent?.get(key) ?? this.#nameOf(target, key, owner)] as const)
      const byName = Map.groupBy(found, ([, text]) => text)
      const shown = new Map(
        found.map(([key, text]) => {
          const isAlone = text !== undefined && byName.get(text)?.length === 1
          return [key, text === undefined ? key : isAlone ? text : `${text} (${key})`]
        }),
      )
      const side = (value: unknown): unknown =>
        Array.isArray(value) ? value.map((each) => shown.get(each) ?? each) : (shown.get(value as Key) ?? value)
      return [name, { from: side(sides.from), to: side(sides.to) }]
    })
    return Object.fromEntries(named)
  }

  /** The name of a row. A row with an owner is named only in rows of the same owner: an actor sees both or none. */
  #nameOf({ table }: ReferenceTarget, key: Key, owner: string | null): string | undefined {
    const row = this.#known.get(placeOf(table, key))
    if (row === undefined) return undefined
    if (isTag(key)) return row.name
    const { model } = row
    if (model.isLabelled && (row.owner ?? null) !== owner) return undefined
    const isFree = model.offersNames === true
    const isUser = model.resource === 'user'
    const isKnown = isUser ? mayNameUser(this.#actor, Number(key)) : mayKnow(this.#actor, model, row.owner)
    return isFree || isKnown ? row.name : undefined
  }

  #targetOf(model: Model, field: string): ReferenceTarget | undefined {
    return this.#world.registry.targets.get(model.fields.get(field)?.reference?.target ?? '')
  }

  #addRead(target: ReferenceTarget, row: Row): void {
    const model = this.#world.modelOf(target.table, row)
    const text = nameColumns(target)
      .map(({ column }) => row[column])
      .find((each) => typeof each === 'string')
    if (model !== undefined && typeof text === 'string')
      this.#known.set(placeOf(model.table, row.pk), { name: text, model, owner: row.owner })
  }

  /** Adds a row that the document deletes, which cannot be read any more, or creates, which has another key in each plan. */
  #addWritten({ action, step: { model }, label: name, row, tag }: Finding): void {
    if (action === 'delete' && row !== undefined)
      this.#known.set(placeOf(model.table, row.pk), { name, model, owner: row.owner })
    if (tag !== undefined) this.#known.set(placeOf(model.table, tag), { name, model, owner: undefined })
  }
}

const placeOf = (table: string, key: Key): string => `${table} ${key}`

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

const isTag = (key: Key): boolean => typeof key === 'string' && key.startsWith('!KeyOf ')

/** The keys on both sides, and the tags in place of keys. */
const keysIn = (sides: Fields[string]): Key[] =>
  typeof sides === 'string'
    ? []
    : [...keysOf(sides.from), ...keysOf(sides.to)].filter(
        (key) => typeof key === 'number' || uuid.test(key) || isTag(key),
      )

/** The names by which an entry refers to rows, by the keys of the rows. */
function namesSent(
  { attrs, identifiers }: Finding['step'],
  field: string,
  keys: unknown,
): ReadonlyMap<Key, string> | undefined {
  const said = [attrs.get(field) ?? identifiers.get(field)].flat()
  const found = [keys].flat()
  if (said.length !== found.length) return undefined
  return new Map(said.flatMap((each, index) => (each instanceof Named ? [[found[index] as Key, each.name]] : [])))
}
