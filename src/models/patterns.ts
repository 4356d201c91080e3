import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js'
import { type OperatorRules, operatorRules } from './operator-rules.ts'
import { parse, partsOf, Refused } from './pattern-nodes.ts'
import { checkPaths } from './pattern-paths.ts'
import { checkHosts } from './redirect-hosts.ts'
import { remembered } from './remembered.ts'
import type { Syntax } from './syntax.ts'

/** Constructs of other engines, by their first characters: RE2 has none of them, since it matches in linear time. */
const foreign: readonly (readonly [start: RegExp, name: string])[] = [
  [/^\(\?[=!]/, 'look-ahead'],
  [/^\(\?<[=!]/, 'look-behind'],
  [/^(?:\\[1-9kg]|\(\?P$)/, 'back-reference'],
  [/^\(\?>/, 'atomic group'],
  [/^\(\?\(/, 'condition'],
  [/^\(\?#/, 'comment'],
  [/^(?:[*+?]|\{\d+(?:,\d*)?\})\+/, 'possessive repeat'],
  [/^\{\d/, 'such repeat (at most 1000 times, nested ones multiplied)'],
]

/** An expression that proxies match with RE2 (github.com/google/re2/wiki/Syntax). It is compiled to check it, and never run. */
export const regularExpression: Syntax = (text) => {
  try {
    RE2JS.compile(text)
    return undefined
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const { error: reason = error.message, input } = error instanceof RE2JSSyntaxException ? error : {}
    // RE2 quotes the whole expression for an error of a bracket.
    const found = input === text || !/^[ -~]+$/.test(input ?? '') ? '' : `${input}`
    const [, name] = foreign.find(([start]) => start.test(found)) ?? []
    const shown = found.length > 40 ? `${found.slice(0, 40)}...` : found
    return name === undefined || found === ''
      ? `Must be a regular expression of RE2: ${reason}${found === '' ? '' : `: ${shown}`}.`
      : `Must be a regular expression of RE2, which has no ${name}: ${shown}.`
  }
}

/** One expression per line; empty lines are ignored. */
export const regularExpressionLines: Syntax = (text) => {
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const error = regularExpression(line)
    if (error !== undefined) return `Line ${index + 1}: ${error}`
  }
  return undefined
}

const maxLength = 500

/** The parts of an RE2 expression that Python and JavaScript read alike: printable ASCII, no empty class, no assertion. */
const portable =
  /^(?:\\(?:[dDwWsS]|[!-~](?<![A-Za-z\d]))|\[\^?(?:\\(?:[dDwWsS]|[!-~](?<![A-Za-z\d]))|[!-Z_-~])(?:\\(?:[dDwWsS]|[!-~](?<![A-Za-z\d]))|[!-Z^-~])*\]|[*+?]\??|\{\d.*|\((?:\?i?:|\?P<\w+>)?|[!-~](?<![[\]{}\\]))$/

/**
 * The pattern of a redirect URI. It matches a URI as a whole, with or without anchors. Servers match it with engines of their
 * own, some of which backtrack: so it has one way to match a text, or few. All hosts that it matches belong to one owner: another
 * owner would get codes and tokens (docs/adr/0120-hosts-of-redirect-patterns.md).
 */
export const redirectPattern: Syntax = (text) =>
  byRules.getOrInsertComputed(operatorRules() ?? noRules, () => remembered(patternError))(text)

const noRules = {}
const byRules = new WeakMap<OperatorRules | typeof noRules, Syntax>()

function patternError(text: string): string | undefined {
  const invalid = regularExpression(text)
  if (invalid !== undefined) return invalid
  if (text.length > maxLength) return `May have at most ${maxLength} characters.`
  // Other engines take a flag at the very beginning only. The dots of 127.0.0.1 match other characters too, and none of those
  // hosts can be registered.
  const parts = partsOf(text.replace(/^\(\?i\)/, '').replace(/^(\^?https?:\/\/)127.0.0.1(?=[:/$(]|$)/, '$1localhost'))
  const other = parts.find((part) => !portable.test(part))
  if (other !== undefined)
    return `May not hold ${other}: engines differ in what it means. Write printable characters, classes such as [^/?#], groups such as (?:a|b) and (?P<name>a), repeats, and (?i) before all else.`
  const inside = parts.find(
    (part, at) =>
      (part === '$' && !/^[|)]?$/.test(parts[at + 1] ?? '')) ||
      (part === '^' && !/^([|(].*)?$/.test(parts[at - 1] ?? '')),
  )
  if (inside !== undefined)
    return `May not hold ${inside} there, where it matches nothing: write \\${inside} for the character.`
  const whole = parse(parts)
  try {
    checkHosts(whole, text)
    checkPaths(whole)
    return undefined
  } catch (error) {
    if (error instanceof Refused) return error.message
    throw error
  }
}
