import { z } from 'zod'
import { shownOnly } from '../models/fields.ts'
import { storable } from '../models/syntax.ts'

/** Why a run was submitted, as its submitter says it: one line, which is kept with the options of the run. */

/** In characters. */
export const longestMessage = 300

/** @returns null when nothing is said */
export function messageOf(sent: string): string | null {
  const text = sent.trim().normalize('NFC')
  return text === '' ? null : text
}

/** @returns what is wrong with a message; null when nothing is */
export function whyNoMessage(message: string): string | null {
  if (message.length > longestMessage) return `Must be at most ${longestMessage} characters.`
  return (storable(message) ?? shownOnly(message)) === undefined ? null : 'Has a character that cannot be shown.'
}

const stored = z.object({ message: z.string().nullable().default(null) })

export const messageOfRun = ({ options }: { readonly options: unknown }): string | null => stored.parse(options).message
