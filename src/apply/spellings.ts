import { comparedName } from '../names.ts'
import type { Effect } from '../plan/effect.ts'
import { takenApart } from '../plan/inspect.ts'
import { columnOf } from '../plan/statements.ts'

/**
 * Two entries may not give one name in two spellings: `ops` and `OPS`. An apply sees the row of the first in the database. A
 * check does not write, so it remembers the names that its entries have given.
 */
export class Spellings {
  /** The given names, by table, field and folded name: the spelling, and the key of the row, where it is known. */
  readonly #given = new Map<string, { readonly name: string; readonly key: unknown }>()

  /** Adds an error for each new name that an earlier entry gives in another spelling. */
  check({ step: { model, path, state, identifiers, was }, row, sent, errors }: Effect): void {
    const placeOf = (field: string, name: string) => `${model.table} ${field} ${comparedName(name)}`
    const names = [...sent].filter(
      (each): each is [string, string] => model.fields.get(each[0])?.folded === true && typeof each[1] === 'string',
    )
    const [first = ''] = identifiers.keys()
    if (was !== undefined) this.#given.delete(placeOf(first, was))
    const key = row?.pk ?? identifiers.get('pk')
    for (const [field, name] of names) {
      const place = placeOf(field, name)
      if (state === 'absent') this.#given.delete(place)
      if (state === 'absent' || (row !== undefined && (state !== 'present' || row[columnOf(model, field)] === name)))
        continue
      const earlier = this.#given.get(place)
      // A row may be given another spelling of its own name.
      const isOwn = earlier === undefined || earlier.name === name || (key !== undefined && key === earlier.key)
      if (isOwn) this.#given.set(place, { name, key: key ?? earlier?.key })
      else errors.add([...path, field], 'taken', takenApart(model, earlier.name, name))
    }
  }
}
