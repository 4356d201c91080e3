import type { Model, ReferenceTarget } from '../models/define.ts'
import { type Actor, mayNameUser } from '../permissions.ts'
import { mayKnow } from '../plan/effect.ts'
import type { Loader } from '../plan/load.ts'
import { byKey } from '../plan/look.ts'
import { Named } from '../plan/named.ts'
import { nameColumns } from '../plan/references.ts'
import type { Key } from '../plan/statements.ts'
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
type NameOf = (key: Key) => string | undefined

export class ReferenceNames {
  readonly #world: World
  readonly #actor: Actor
  /** The names of the rows that the document creates, by the text in place of their keys. */
  readonly #created: ReadonlyMap<string | undefined, string>

  private constructor(world: World, actor: Actor, findings: readonly Finding[]) {
    this.#world = world
    this.#actor = actor
    this.#created = new Map(findings.map(({ tag, label }) => [tag, label]))
  }

  /** Reads the names of rows to which updates refer: one statement, and none when all are loaded. */
  static async read(loader: Loader, actor: Actor, findings: readonly Finding[]): Promise<ReferenceNames> {
    const names = new ReferenceNames(loader.world, actor, findings)
    let left = mostRead
    const looks = findings.flatMap(({ change, step }) =>
      Object.entries(change.action === 'update' ? change.fields : {}).flatMap(([name, sides]) => {
        const [model] = names.#targetOf(step.model, name)?.models ?? []
        const keys = keysIn(sides).filter((key) => !names.#created.has(String(key)))
        if (model === undefined || keys.length > Math.min(mostNamed, left)) return []
        left -= keys.length
        return keys.map((key) => byKey(model, key))
      }),
    )
    await loader.load({ looks })
    return names
  }

  /** The finding, whose change has names for the keys that the submitter may know. A new row has the names of its document. */
  in(finding: Finding): Finding {
    const { change, step, sent, ownership } = finding
    const owner = ownerAfter(ownership, null)
    const fields =
      change.action === 'create'
        ? this.#named(step.model, change.fields, (name) => namesSent(step, name, sent.get(name)))
        : this.fields(step.model, change.fields, owner)
    return { ...finding, change: { ...change, fields } }
  }

  /** Fields of a row, with names for keys. @param owner the label under which the row is managed */
  fields(model: Model, fields: Fields, owner: string | null): Fields {
    return this.#named(model, fields, (_, target) => (key) => this.#nameOf(target, key, owner))
  }

  #named(model: Model, fields: Fields, namesOf: (field: string, target: ReferenceTarget) => NameOf): Fields {
    const named = Object.entries(fields).map(([name, sides]): [string, Fields[string]] => {
      const target = this.#targetOf(model, name)
      const keys = [...new Set(keysIn(sides))]
      if (target === undefined || typeof sides === 'string' || keys.length > mostNamed) return [name, sides]
      const nameOf = namesOf(name, target)
      const found = keys.map((key) => [key, this.#created.get(String(key)) ?? nameOf(key)] as const)
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
  #nameOf(target: ReferenceTarget, key: Key, owner: string | null): string | undefined {
    const row = this.#world.row(target.table, key) ?? this.#world.rowBefore(target.table, key)
    const model = row && this.#world.modelOf(target.table, row)
    if (row === undefined || model === undefined) return undefined
    if (model.isLabelled && (row.owner ?? null) !== owner) return undefined
    const isKnown =
      model.resource === 'user' ? mayNameUser(this.#actor, Number(key)) : mayKnow(this.#actor, model, row.owner)
    if (model.offersNames !== true && !isKnown) return undefined
    return nameColumns(target)
      .map(({ column }) => row[column])
      .find((each) => typeof each === 'string')
  }

  #targetOf(model: Model, field: string): ReferenceTarget | undefined {
    return this.#world.registry.targets.get(model.fields.get(field)?.reference?.target ?? '')
  }
}

/** The keys on both sides, and the texts in place of keys. */
const keysIn = (sides: Fields[string]): Key[] =>
  typeof sides === 'string' ? [] : [...keysOf(sides.from), ...keysOf(sides.to)]

/** The names by which an entry refers to rows, by the keys of the rows. */
function namesSent({ attrs, identifiers }: Finding['step'], field: string, keys: unknown): NameOf {
  const sent = [attrs.get(field) ?? identifiers.get(field)].flat()
  const found = [keys].flat()
  const names = new Map(
    sent.flatMap((each, index) => (each instanceof Named ? [[found[index] as Key, each.name] as const] : [])),
  )
  return (key) => (sent.length === found.length ? names.get(key) : undefined)
}
