/** The items in their order, each after those that it depends on. Items of a circle keep their order. */
export function dependenciesFirst<Item>(items: Iterable<Item>, dependencies: (item: Item) => Iterable<Item>): Item[] {
  const seen = new Set<Item>()
  const ordered: Item[] = []
  const visit = (item: Item) => {
    if (seen.has(item)) return
    seen.add(item)
    for (const other of dependencies(item)) visit(other)
    ordered.push(item)
  }
  for (const item of items) visit(item)
  return ordered
}
