/**
 * The items in their order, each after those that it depends on. Those of a circle keep their order.
 *
 * @param dependencies those of an item, which are read one by one. `done`: the items so far
 * @param onCircle takes a way of items, each of which depends on the next, and the item of it on which the last one depends
 */
export function dependenciesFirst<Item>(
  items: Iterable<Item>,
  dependencies: (item: Item, done: ReadonlySet<Item>) => Iterable<Item>,
  onCircle: (way: ReadonlySet<Item>, to: Item) => void = () => {},
): Item[] {
  const done = new Set<Item>()
  const open = new Set<Item>()
  // It has no recursion: a document may have a chain of all of its entries.
  const way: { readonly item: Item; readonly left: Iterator<Item> }[] = []
  const enter = (item: Item) => {
    if (done.has(item)) return
    open.add(item)
    way.push({ item, left: dependencies(item, done)[Symbol.iterator]() })
  }
  for (const first of items) {
    enter(first)
    for (let last = way.at(-1); last !== undefined; last = way.at(-1)) {
      const { value: next, done: isLast } = last.left.next()
      if (isLast === true) {
        way.pop()
        open.delete(last.item)
        done.add(last.item)
      } else if (open.has(next)) onCircle(open, next)
      else enter(next)
    }
  }
  return [...done]
}
