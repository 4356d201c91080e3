import { Deferred } from './deferred.ts'
import { type Step, waysToFind } from './step.ts'

/** All names by which an entry names its row, also the one before a rename, but none that only the database knows. */
function namesOf({ model, identifiers, was }: Step): string[] {
  const [first = ''] = identifiers.keys()
  const ways = waysToFind(model, [...identifiers.keys()]).map((way) => way.map((name) => [name, identifiers.get(name)]))
  if (was !== undefined) ways.push([[first, was]])
  return ways
    .filter((way) => way.every(([, value]) => value !== undefined && !(value instanceof Deferred)))
    .map((way) => JSON.stringify([model.name, way]))
}

/**
 * Finds the facts about the row of an entry, by the names under which the entries before name it, without the database. Two names
 * of a row are one where an entry has both; that others are, only the judge knows.
 *
 * @param make makes the facts of a row that no entry has named yet
 */
export function byNames<Row>(make: () => Row): (step: Step) => Row {
  const rows = new Map<string, Row>()
  return (step) => {
    const names = namesOf(step)
    const row = names.flatMap((name) => rows.get(name) ?? []).at(0) ?? make()
    for (const name of names) rows.set(name, row)
    return row
  }
}
