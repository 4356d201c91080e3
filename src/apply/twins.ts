import { lookAlike, skeletonOf } from '../models/skeleton.ts'
import { comparedName } from '../names.ts'
import { type Actor, allows } from '../permissions.ts'
import type { Effect } from '../plan/effect.ts'
import { RowSet } from '../plan/row-set.ts'

/**
 * Names by which rights are given may not look alike: a reader of a document would take one for the other. Knows the names
 * that the entries of the document have given and freed, which a check does not write.
 */
export class Twins {
  readonly #given = new Map<string, string[]>()
  readonly #freed = new RowSet()

  /** Adds an error for each new name that looks like one of another row. It names that row to those who may view it. */
  check({ step: { model, path }, action, row, errors, newNames = [] }: Effect, actor: Actor): void {
    for (const { field, value, twins } of newNames) {
      const place = `${model.table} ${field} ${skeletonOf(value)}`
      const given = this.#given.getOrInsertComputed(place, () => [])
      const earlier = given.find((other) => lookAlike(value, other) && comparedName(other) !== comparedName(value))
      const twin = twins.find(({ pk }) => !this.#freed.has(model, pk))
      const other = earlier ?? (allows(actor, `view_${model.resource}`) ? twin?.value : undefined)
      if (earlier !== undefined || twin !== undefined) {
        const whose =
          other === undefined ? `another ${model.displayName}` : `${model.displayName} ${JSON.stringify(other)}`
        errors.add([...path, field], 'taken', `Looks like the name of ${whose}: choose another.`)
      }
      given.push(value)
    }
    if (row !== undefined && (action === 'delete' || newNames.length > 0)) this.#freed.add(model, row.pk)
  }
}
