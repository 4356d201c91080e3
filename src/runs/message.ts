import { shownOnly } from '../models/fields.ts'
import { storable } from '../models/syntax.ts'

/** The reason for a run in its submitter's words: one line, which is kept with the options of the run. */

/** Characters. */
export const longestMessage = 300

/** @returns null for an empty message */
export function messageOf(sent: string): string | null {
  const text = sent.trim().normalize('NFC')
  return text === '' ? null : text
}

/** @returns why a message is not valid; null when it is */
export function whyNoMessage(message: string): string | null {
  if (message.length > longestMessage) return `Must be at most ${longestMessage} characters.`
  return (storable(message) ?? shownOnly(message)) === undefined ? null : 'Has a character that cannot be shown.'
}
