import { type Change, change } from '../apply/changes.ts'

/**
 * The changes of a run as its row holds them. An element that cannot be read, because SQL or another version wrote it, is left
 * out: the rest of the run is shown.
 *
 * @returns `isWhole`: false when some part of it could not be read
 */
export function readStoredChanges(stored: unknown): { readonly changes: Change[]; readonly isWhole: boolean } {
  const all = stored ?? []
  if (!Array.isArray(all)) return { changes: [], isWhole: false }
  const changes = all.flatMap((each: unknown) => change.safeParse(each).data ?? [])
  return { changes, isWhole: changes.length === all.length }
}
