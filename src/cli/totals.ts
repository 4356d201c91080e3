import type { Change } from './runs.ts'

/** The numbers of objects that are added, changed and deleted, also for each file of a document. */

export type Totals = {
  readonly add: number
  readonly change: number
  readonly delete: number
  readonly unchanged: number
}

type Changed = { readonly changes: readonly Change[] | null }

/** Counts the objects: one that several entries name counts once. @returns null when the changes of no document are known */
export function totalsOf(results: readonly Changed[]): Totals | null {
  if (results.every(({ changes }) => changes === null)) return null
  const actions = new Map<string, string>()
  for (const { model, key, action } of results.flatMap(({ changes }) => changes ?? [])) {
    const object = JSON.stringify([model, Object.entries(key).sort()])
    actions.set(object, together(actions.get(object), action))
  }
  const counts = Map.groupBy(actions.values(), (action) => action)
  const [add = 0, change = 0, deleted = 0, unchanged = 0] = ['create', 'update', 'delete', 'unchanged'].map(
    (action) => counts.get(action)?.length,
  )
  return { add, change, delete: deleted, unchanged }
}

/** The action of two entries on one object together. */
function together(before: string | undefined, now: string): string {
  if (before === 'create') return now === 'delete' ? 'unchanged' : before
  if (before === 'delete') return now === 'create' ? 'update' : before
  return before === undefined || now !== 'unchanged' ? now : before
}

/** `3 to add, 1 to change, 2 to delete, 294 unchanged` */
export function totalsText({ add, change, delete: deleted, unchanged }: Totals, isDone: boolean): string {
  const words = isDone ? ['added', 'changed', 'deleted'] : ['to add', 'to change', 'to delete']
  return [...[add, change, deleted].map((count, index) => `${count} ${words[index]}`), `${unchanged} unchanged`].join(
    ', ',
  )
}

/** A file of a joined document. @property from the index of its first entry there @property count the number of its entries */
export type FilePart = { readonly file: string; readonly from: number; readonly count: number }

export type OfFile<Outcome> = Changed & { readonly file: string; readonly outcome: Outcome }

/** The changes of each file. A change that follows from the whole document, such as a prune, belongs to none. */
export function byFile<Outcome extends string>({
  file,
  outcome,
  changes,
  parts,
}: OfFile<Outcome> & { readonly parts?: readonly FilePart[] }): OfFile<Outcome | 'unchanged'>[] {
  if (parts === undefined) return [{ file, outcome, changes }]
  if (changes === null) return parts.map((part) => ({ file: part.file, outcome, changes }))
  const entries = entriesOf(changes)
  const partOf = parts.flatMap(({ count }, index) => Array.from({ length: count }, () => index))
  const own = Map.groupBy(changes, (_, index) => partOf[entries[index] ?? -1])
  return parts.map((part, index) => {
    const found = own.get(index) ?? []
    const isUnchanged = found.every(({ action }) => action === 'unchanged')
    return { file: part.file, outcome: isUnchanged ? 'unchanged' : outcome, changes: found }
  })
}

/** The index of the entry of each change; null for a change that follows from the document. */
function entriesOf(changes: readonly Change[]): (number | null)[] {
  let next = 0
  return changes.map(({ entry = next }) => {
    if (entry !== null) next = entry + 1
    return entry
  })
}
