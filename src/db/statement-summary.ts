const mostKept = 2_000
const summaries = new Map<string, string>()

/**
 * Summarises a statement in few words, for traces: `SELECT users`, `INSERT runs`, `COMMIT`. The summary holds no value.
 *
 * A statement that changes a table is named by its first change, wherever it stands; one that reads, by the first table of its
 * outermost `FROM`.
 */
export function summaryOf(text: string): string {
  const known = summaries.get(text)
  if (known !== undefined) return known
  if (summaries.size >= mostKept) summaries.clear()
  const summary = summarise(text)
  summaries.set(text, summary)
  return summary
}

/** `FOR UPDATE` locks, and `DO UPDATE` belongs to an INSERT. */
const change = /(?<!\b(?:FOR|KEY|DO)\s+)\b(INSERT|UPDATE|DELETE)\s+(?:INTO\s+|FROM\s+)?(?:ONLY\s+)?([\w."]+)/i
const from = /\bFROM\s+(?:ONLY\s+)?([\w."]+)/i
const reading = 'SELECT'
const longestTable = 63

function summarise(text: string): string {
  const plain = text.replaceAll(/'(?:[^']|'')*'/g, "''").replaceAll(/\/\*.*?\*\//gs, '')
  const [, verb, changed] = change.exec(plain) ?? []
  if (verb !== undefined && changed !== undefined) return `${verb.toUpperCase()} ${tableOf(changed)}`
  const word = /[a-z]+/i.exec(plain)?.[0].toUpperCase() ?? 'UNKNOWN'
  if (word !== reading && word !== 'WITH') return word
  const [, read] = from.exec(outermost(plain)) ?? []
  return read === undefined ? reading : `${reading} ${tableOf(read)}`
}

/** `"public"."users"` -> `users` */
const tableOf = (name: string): string => (name.replaceAll('"', '').split('.').at(-1) ?? '').slice(0, longestTable)

/** The text without the contents of parentheses. */
function outermost(text: string): string {
  let depth = 0
  let outer = ''
  for (const character of text) {
    if (character === ')') depth = Math.max(0, depth - 1)
    if (depth === 0) outer += character
    if (character === '(') depth += 1
  }
  return outer
}
