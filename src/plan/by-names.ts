import { Deferred } from './deferred.ts'
import { type Step, waysToFind } from './step.ts'

type Node<Row> = { readonly row: Row; readonly index: number; into?: Node<Row> }

/** Facts about each row that entries name, by all names under which they name it, without the database. */
export class ByNames<Row> {
  readonly #nodes = new Map<string, Node<Row>>()
  readonly #merge: (row: Row, other: Row) => void
  #count = 0

  /** @param merge adds the facts of one row to another, when an entry names both as one */
  constructor(merge: (row: Row, other: Row) => void) {
    this.#merge = merge
  }

  /** The row in all of these places. @param make makes a row that no entry has named yet */
  of(places: readonly string[], make: () => Row): Row {
    let node: Node<Row> | undefined
    for (const place of places) {
      const found = this.#nodes.get(place)
      if (found !== undefined) node = this.#joined(whole(found), node)
    }
    node ??= { row: make(), index: this.#count++ }
    for (const place of places) this.#nodes.set(place, node)
    return node.row
  }

  #joined(one: Node<Row>, other: Node<Row> = one): Node<Row> {
    if (one === other) return one
    const [node, gone] = one.index < other.index ? [one, other] : [other, one]
    gone.into = node
    this.#merge(node.row, gone.row)
    return node
  }
}

function whole<Row>(node: Node<Row>): Node<Row> {
  let last = node
  while (last.into !== undefined) last = last.into
  return last
}

/** All names by which an entry names its row, also the one before a rename, but none that only the database knows. */
export function placesOf({ model, identifiers, was }: Step): string[] {
  const [first = ''] = identifiers.keys()
  const ways = waysToFind(model, [...identifiers.keys()]).map((way) => way.map((name) => [name, identifiers.get(name)]))
  if (was !== undefined) ways.push([[first, was]])
  return ways
    .filter((way) => way.every(([, value]) => value !== undefined && !(value instanceof Deferred)))
    .map((way) => JSON.stringify([model.name, way]))
}
