import { regularExpression, type Syntax } from './syntax.ts'

/**
 * The pattern of a redirect URI: it must describe the whole URI, and match in linear time. `^` and `$` at its ends, with
 * alternatives in a group; no repeated group that holds a quantifier, such as `(a+)+`, which can run for ever.
 */
export const wholePattern: Syntax = (text) => {
  const invalid = regularExpression(text)
  if (invalid !== undefined) return invalid
  const { isAnchored, isNested } = shapeOf(text)
  if (!isAnchored) return 'Must describe the whole URI: begin with ^ and end with $, and put alternatives into a group.'
  return isNested ? 'May not repeat a group that holds *, +, ? or {}: it could run for ever.' : undefined
}

/** Parts of a valid expression: an escape, a class, a quantifier with its `?`, the start of a group, or one character. */
const parts = /\\.|\[(?:\\.|[^\]\\])*\]|(?:[*+?]|\{\d+(?:,\d*)?\})\??|\(\?(?:[:=!]|<[=!]|<[^>]*>|[a-z-]+:)|[\s\S]/g

const isQuantifier = (part: string) => /^(?:[*+?]|\{\d)/.test(part)
/** `?` and `{1}` repeat nothing. */
const isRepeating = (part: string) => /^(?:[*+]|\{(?!0?,?1\}|0,1\}|1,1\}))/.test(part)

function shapeOf(pattern: string): { isAnchored: boolean; isNested: boolean } {
  const found = pattern.match(parts) ?? []
  // For each open group whether it holds a quantifier; the first is the whole.
  const open = [false]
  let closed: boolean | undefined
  let isNested = false
  let hasAlternatives = false
  for (const part of found) {
    const before = closed
    closed = undefined
    if (part === ')') {
      closed = open.pop() ?? false
      if (closed) open[open.length - 1] = true
    } else if (part.startsWith('(')) {
      open.push(false)
    } else if (isQuantifier(part)) {
      if (before === true && isRepeating(part)) isNested = true
      open[open.length - 1] = true
    } else if (part === '|' && open.length === 1) {
      hasAlternatives = true
    }
  }
  return { isAnchored: found[0] === '^' && found.at(-1) === '$' && !hasAlternatives, isNested }
}
