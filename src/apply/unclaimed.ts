import type { Actor } from '../permissions.ts'
import type { LeftEmpty, Orphan } from '../plan/claims.ts'
import { mayKnow } from '../plan/effect.ts'
import type { Conditions, Mode } from '../plan/engine.ts'
import { maxListed, nameOf } from './words.ts'

/**
 * The lines of the log about rows that a document leaves empty or unclaimed. Rows that the submitter may not know are left out
 * (docs/adr/0058-roles-are-bound-to-owners.md).
 */

/** A line for each row that no row claims any more, with the remedy. */
export function orphanLines(orphans: readonly Orphan[], actor: Actor, { mode, replaceProvider }: Conditions): string[] {
  const has = mode === 'plan' ? 'would have' : 'has'
  const known = orphans.filter(({ row }) => mayKnow(actor, row.model, row.owner))
  const lines = known.map(({ row, claimant, isReplaced }) => {
    const remedy =
      isReplaced && !replaceProvider ? 'delete it, or send ?replace_provider=true next time' : 'delete it, or use it'
    return `${nameOf(row)} ${has} no ${claimant} now: ${remedy}`
  })
  return limited(lines)
}

/** A line for each row that lost what it claimed. */
export function emptyLines(left: readonly LeftEmpty[], actor: Actor, mode: Mode): string[] {
  const [loses, has] = mode === 'plan' ? ['would lose', 'would have'] : ['lost', 'has']
  const known = left.filter(({ row }) => mayKnow(actor, row.model, row.owner))
  const lines = known.map(({ row, field, isLink, what }) =>
    isLink
      ? `${nameOf(row)} ${loses} ${what} from ${field}: send the field again with another, if it needs one`
      : `${nameOf(row)} ${has} no ${field} now, because ${what} is deleted: send it with another, or delete it`,
  )
  return limited(lines)
}

export function limited(lines: readonly string[]): string[] {
  const more = lines.length - maxListed
  return [...lines.slice(0, maxListed), ...(more > 0 ? [`${more} more are not listed`] : [])]
}
