import { isObject } from '../json-object.ts'
import { ownerLabel } from '../models/fields.ts'
import { hasOwner } from '../permissions.ts'
import { UsageError } from './exit.ts'
import type { Document } from './inputs.ts'

/** `--owner`, or `GATEWRIGHT_OWNER`, for files without an owner of their own. */
export type OwnerGiven = {
  readonly label: string | undefined
  /** Whether it is `--owner`: it may not differ from the owner of a file then. */
  readonly isOption: boolean
}

/** @returns the owner in the form that the service stores @throws {UsageError} */
export function readOwner(name: string, sent: string | null | undefined): string | undefined {
  const { data: owner, error } = ownerLabel().nullish().safeParse(sent)
  if (error !== undefined) throw new UsageError(`${name}: ${error.issues.map(({ message }) => message).join(' ')}`)
  return owner ?? undefined
}

type Owned = Pick<Document, 'value' | 'ofPath'>

/** The owner that a file names. */
export const ownOwner = ({ value: { owner } }: Owned): string | undefined =>
  typeof owner === 'string' ? owner : undefined

/** The owner that a file names, or that its path has. */
export const namedOwner = (document: Owned): string | undefined => ownOwner(document) ?? document.ofPath

/** The owner under which a file is applied. */
export const ownerOf = (document: Owned, { label }: OwnerGiven): string | undefined => namedOwner(document) ?? label

/** The owners whose objects a file deletes where it does not name them; undefined: one that is not known. */
export function prunedBy(document: Owned, given: OwnerGiven): readonly (string | undefined)[] {
  const { prune } = document.value
  if (Array.isArray(prune)) return prune.map(String)
  return prune === true ? [ownerOf(document, given)] : []
}

/** The entry with an owner, where its model has owners. The service may know more models than this program. */
export function withOwner<Sent>(entry: Sent, owner: string | undefined): Sent {
  if (!isObject(entry) || 'owner' in entry || typeof entry.model !== 'string') return entry
  const [resource = ''] = entry.model.split('.').slice(-1)
  return hasOwner(resource) ? { ...entry, owner } : entry
}
