import { z } from 'zod'

/**
 * Sentences for the person who wrote the value. They replace zod's default messages. A message of a schema goes before
 * them.
 */

const typeMessages: Readonly<Record<string, string>> = {
  string: 'Must be text.',
  number: 'Must be a number.',
  int: 'Must be a whole number.',
  boolean: 'Must be true or false.',
  array: 'Must be a list.',
  tuple: 'Must be a list.',
  object: 'Must be an object.',
  record: 'Must be an object.',
  null: 'Must be null.',
}

function sentence(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'This field is required.'
  switch (issue.code) {
    case 'invalid_type':
      return typeMessages[issue.expected] ?? `Must be ${issue.expected}.`
    case 'too_small':
      return issue.origin === 'string' && issue.minimum === 1
        ? 'May not be empty.'
        : `Must be at least ${issue.minimum}${unit(issue.origin)}.`
    case 'too_big':
      return `Must be at most ${issue.maximum}${unit(issue.origin)}.`
    case 'invalid_value':
      return `Must be one of: ${issue.values.map(String).join(', ')}.`
    case 'unrecognized_keys':
      return `Unknown field: ${issue.keys.join(', ')}.`
    default:
      return undefined
  }
}

const unit = (origin: string) => (origin === 'string' ? ' characters' : origin === 'array' ? ' entries' : '')

z.config({ customError: sentence })

/** @returns the known name nearest to a mistyped one, if at most a third of its letters differ */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue
    const distance = editDistance(name, candidate)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** The message for an unknown name, with the name that was probably meant. */
export function unknownName(what: string, name: string, known: Iterable<string>): string {
  const near = name.length > 100 ? undefined : nearest(name, known)
  return near === undefined ? `Unknown ${what}.` : `Unknown ${what}. Did you mean ${near}?`
}

/** The Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 0; i < a.length; i += 1) {
    const row = [i + 1]
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (previous[j] ?? 0) + (a[i] === b[j] ? 0 : 1)
      row.push(Math.min(replaced, (previous[j + 1] ?? 0) + 1, (row[j] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}
