import { durationSeconds, type Syntax } from './syntax.ts'

/**
 * An overlap: a secret that was replaced stays valid beside the new one, for a time, so that its holders can change over. It is
 * stored sealed among the secrets of its row, with the time until which it is valid.
 */

/** The read-only field with the secret before this one. */
export const previousOf = (field: string): string => `previous_${field}`

/** The read-only field with the time until which that secret is valid. */
export const expiresOf = (field: string): string => `${previousOf(field)}_expires`

const longestDays = 90

/** The limits of an overlap. A longer one would be forgotten, and a shorter one would end before a client can be changed. */
export const overlap: Syntax = (text) => {
  const seconds = durationSeconds(text)
  if (typeof seconds === 'string') return seconds
  return seconds >= 1 && seconds <= longestDays * 86_400 ? undefined : `Must be from seconds=1 to days=${longestDays}.`
}

/** @param now the time by the database's clock @returns the end of a valid overlap, in whole seconds: `2026-11-23T10:00:00Z` */
export function overlapEnd(text: string, now: Date): string {
  const endMs = now.getTime() + Number(durationSeconds(text)) * 1_000
  return new Date(Math.ceil(endMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}
