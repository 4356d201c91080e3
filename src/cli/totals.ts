import type { Result } from './deliver.ts'
import type { Change } from './runs.ts'

/** The numbers of objects that are added, changed and deleted, also for each file of a document. */

export type Totals = {
  readonly add: number
  readonly change: number
  readonly delete: number
  readonly unchanged: number
}

/** Counts the objects: one that several entries name counts once. @returns null when the changes of no document are known */
export function totalsOf(results: readonly Pick<Result, 'changes'>[]): Totals | null {
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

type OfFile = Pick<Result, 'file' | 'outcome' | 'changes'>

/** The changes of each file. A change that follows from the whole document, such as a prune, belongs to none. */
export function byFile({ file, outcome, changes, parts }: OfFile & Pick<Result, 'parts'>): OfFile[] {
  if (parts.length < 2) return [{ file, outcome, changes }]
  const entries = entriesOf(changes ?? [])
  const partOf = parts.flatMap((part) => (part.entries ?? []).map(() => part))
  const own = Map.groupBy(changes ?? [], (_, index) => partOf[entries[index] ?? -1])
  return parts.map((part) => {
    const { file } = part.document
    if (changes === null) return { file, outcome, changes }
    const found = own.get(part) ?? []
    const isUnchanged = found.every(({ action }) => action === 'unchanged')
    return { file, outcome: isUnchanged ? 'unchanged' : outcome, changes: found }
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
