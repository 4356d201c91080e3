import { isObject } from '../json-object.ts'
import type { Result } from './deliver.ts'
import { ownOwner, withOwner } from './owners.ts'
import { sentOf } from './places.ts'
import type { Change } from './runs.ts'

/** The numbers of objects that are added, changed and deleted, also for each file of a document. */

type Totals = NonNullable<ReturnType<typeof totalsOf>>

/** Counts the objects: one that several entries name counts once. @returns null when the changes of no document are known */
export function totalsOf(results: readonly Pick<Result, 'changes'>[]) {
  if (results.every(({ changes }) => changes === null)) return null
  const actions = new Map<string, string>()
  for (const { model, key, action } of results.flatMap(({ changes }) => changes ?? [])) {
    const object = JSON.stringify([model, Object.entries(key).sort()])
    actions.set(object, together(actions.get(object), action))
  }
  const all = [...actions.values()]
  const countOf = (asked: string) => all.filter((action) => action === asked).length
  return {
    add: countOf('create'),
    change: countOf('update'),
    delete: countOf('delete'),
    unchanged: countOf('unchanged'),
  }
}

/** The action of two entries on one object together. */
function together(before: string | undefined, now: string): string {
  if (before === 'create') return now === 'delete' ? 'unchanged' : before
  if (before === 'delete') return now === 'create' ? 'update' : before
  return before === undefined || now !== 'unchanged' ? now : before
}

/** `3 to add, 1 to change, 2 to delete`; of what is done also `294 unchanged`: a plan ends with that. */
export function totalsText({ add, change, delete: deleted, unchanged }: Totals, isDone: boolean): string {
  const words = isDone ? ['added', 'changed', 'deleted'] : ['to add', 'to change', 'to delete']
  const counts = [add, change, deleted].map((count, index) => `${count} ${words[index]}`)
  return [...counts, ...(isDone ? [`${unchanged} unchanged`] : [])].join(', ')
}

/** `640 unchanged in 341 files`; none where nothing is, or where it is not known. */
export function unchangedText(results: readonly Result[]): string[] {
  const count = totalsOf(results)?.unchanged ?? 0
  const files = results
    .flatMap((result) => (result.parts.length === 0 ? [] : byFile(result)))
    .filter(({ changes }) => changes?.some(({ action }) => action === 'unchanged')).length
  if (count === 0) return []
  return [`${count} unchanged${files === 0 ? '' : ` in ${files} ${files === 1 ? 'file' : 'files'}`}`]
}

type OfFile = Pick<Result, 'file' | 'outcome' | 'changes'>

/** The changes of each file. A change that follows from the whole document, such as a prune, belongs to none. */
export function byFile({ file, outcome, changes, parts }: OfFile & Pick<Result, 'parts'>): OfFile[] {
  if (parts.length < 2) return [{ file, outcome, changes }]
  const own = Map.groupBy(placed({ changes, parts }), ({ file }) => file)
  return parts.map(({ document: { file } }) => {
    if (changes === null) return { file, outcome, changes }
    const found = (own.get(file) ?? []).map(({ change }) => change)
    const isUnchanged = found.every(({ action }) => action === 'unchanged')
    return { file, outcome: isUnchanged ? 'unchanged' : outcome, changes: found }
  })
}

/**
 * @property file where there are several
 * @property owner that of the entry, or of its file
 * @property named the fields that the entry names; undefined where they are not known
 */
export type PlacedChange = {
  readonly change: Change
  readonly file?: string | undefined
  readonly owner: unknown
  readonly named?: ReadonlySet<string> | undefined
}

/** The changes with their places. One that follows from the whole document has no file. */
export function placed({ changes, parts }: Pick<Result, 'changes' | 'parts'>): PlacedChange[] {
  const sent = parts.flatMap((part) => sentOf(part).map(({ entry }) => ({ entry, document: part.document })))
  let next = 0
  return (changes ?? []).map((change) => {
    const { entry: at = next } = change
    if (at === null) return { change, owner: undefined }
    next = at + 1
    const { entry, document } = sent[at] ?? { entry: undefined, document: parts[0]?.document }
    const value = isObject(document?.value) ? document.value : {}
    const { owner, identifiers, attrs } = Object(withOwner(entry ?? { model: change.model }, ownOwner({ value })))
    const file = parts.length > 1 && document !== undefined ? { file: document.file } : {}
    const named = new Set([identifiers, attrs].flatMap((each) => Object.keys(Object(each))))
    return { change, ...file, owner, named: document && named }
  })
}
