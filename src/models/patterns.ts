import { regularExpression, type Syntax } from './syntax.ts'
import { redirectUri } from './urls.ts'

/**
 * The pattern of a redirect URI. Relying parties match it with engines of their own, most of which backtrack. So it is of
 * a form that each of them matches in linear time: at each character of a text, at most one part of the pattern can go on
 * (unique particle attribution, www.w3.org/TR/xmlschema-1/#cos-nonambig), and nothing matches the empty text twice.
 * Its scheme and host are literal: one that matches the URIs of others gives codes and tokens to them.
 */
export const redirectPattern: Syntax = (text) => {
  const invalid = regularExpression(text)
  if (invalid !== undefined) return invalid
  if (text.length > maxLength) return `May have at most ${maxLength} characters.`
  const parts = text.match(partsOf) ?? []
  if (parts.at(0) !== '^' || parts.at(-1) !== '$') return form
  const inner = parts.slice(1, -1)
  const other = inner.find((part) => !portable.test(part))
  if (other === '^' || other === '$') return form
  if (other !== undefined)
    return `May not hold ${other}: engines differ in what it means, or in how long it takes. Write characters, classes such as [^/?#], groups and repetitions.`
  const whole = parse(inner)
  return hostError(whole) ?? ambiguity(whole)
}

const maxLength = 500

/** Of `{2,9}`, and of all that stand in each other together: an engine may write out what is repeated. */
const maxRepeats = 1_000

const form =
  'Must begin with ^, a literal scheme and a host whose dots are escaped, and end with $, such as ^https://app\\.example\\.com/cb/[0-9]+$.'

/** Parts of a valid expression: an escape, a class, a quantifier with its `?`, the start of a group, or one character. */
const partsOf = /\\.|\[(?:\\.|[^\]\\])*\]|(?:[*+?]|\{\d+(?:,\d*)?\})\??|\(\?(?:[:=!]|<[=!]|<[^>]*>|[a-z-]+:)|[\s\S]/g

/** Of those, the ones that all engines read alike: printable ASCII, no empty class, no assertion, no reference. */
const portable =
  /^(?:\\(?:[dDwWsS]|[!-~](?<![A-Za-z\d]))|\[\^?(?:\\(?:[dDwWsS]|[!-~](?<![A-Za-z\d]))|[!-Z_-~])(?:\\(?:[dDwWsS]|[!-~](?<![A-Za-z\d]))|[!-Z^-~])*\]|[*+?]\??|\{\d.*|\((?:\?:|\?<\w+>)?|[!-~](?<![[\]{}^$\\]))$/

type Node =
  /** One of these characters: a bit for each of ASCII, and one for all others. */
  | { readonly is: 'one'; readonly text: string; readonly characters: bigint }
  | { readonly is: 'all' | 'either'; readonly text: string; readonly nodes: readonly Node[] }
  | { readonly is: 'repeat'; readonly text: string; readonly node: Node; readonly least: number; readonly most: number }

/** Of a valid expression. */
function parse(parts: readonly string[]): Node {
  const known = new Map<string, bigint>()
  let at = 0
  const source = (from: number) => parts.slice(from, at).join('')
  const either = (): Node => {
    const from = at
    const nodes = [all()]
    while (parts[at] === '|') {
      at += 1
      nodes.push(all())
    }
    const [only] = nodes
    return nodes.length === 1 && only !== undefined ? only : { is: 'either', text: source(from), nodes }
  }
  const all = (): Node => {
    const from = at
    const nodes: Node[] = []
    while (at < parts.length && parts[at] !== '|' && parts[at] !== ')') nodes.push(quantified())
    return { is: 'all', text: source(from), nodes }
  }
  const quantified = (): Node => {
    const from = at
    const part = parts[at] ?? ''
    at += 1
    let node: Node = { is: 'one', text: part, characters: 0n }
    if (part.startsWith('(')) {
      node = either()
      at += 1
    } else {
      node = { ...node, characters: known.getOrInsertComputed(part, charactersOf) }
    }
    const times = timesOf(parts[at] ?? '')
    if (times === null) return node
    at += 1
    return { is: 'repeat', text: source(from), node, ...times }
  }
  return either()
}

function timesOf(part: string): { least: number; most: number } | null {
  if (/^[*+?]/.test(part)) return { least: part[0] === '+' ? 1 : 0, most: part[0] === '?' ? 1 : Infinity }
  const [, least, isRange, most] = /^\{(\d+)(,?)(\d*)\}/.exec(part) ?? []
  if (least === undefined) return null
  return { least: Number(least), most: isRange ? Number(most || Infinity) : Number(least) }
}

function charactersOf(part: string): bigint {
  if (/^[\w/-]$/.test(part)) return 1n << BigInt(part.charCodeAt(0))
  const one = new RegExp(`^(?:${part})$`)
  let found = one.test('\u00e9') || one.test('\u00a0') ? 1n << 128n : 0n
  for (let code = 0; code < 128; code += 1) if (one.test(String.fromCharCode(code))) found |= 1n << BigInt(code)
  return found
}

const ofPorts = charactersOf('\\d')

/** The only character that a part matches; undefined when there are several. */
function literalOf(node: Node | undefined): string | undefined {
  if (node?.is !== 'one') return undefined
  const { characters } = node
  return characters > 0n && (characters & (characters - 1n)) === 0n
    ? String.fromCharCode(characters.toString(2).length - 1)
    : undefined
}

/** Whether it matches only such characters, whatever their number. */
function holdsOnly(node: Node, allowed: bigint): boolean {
  switch (node.is) {
    case 'one':
      return (node.characters & ~allowed) === 0n
    case 'repeat':
      return holdsOnly(node.node, allowed)
    default:
      return node.nodes.every((each) => holdsOnly(each, allowed))
  }
}

const isOneOf = (characters: string, node: Node | undefined) => characters.includes(literalOf(node) ?? '\n')

/** What follows the host cannot belong to it: `^https://example\.com.*$` matches a host of another. */
function hostError(whole: Node): string | undefined {
  if (whole.is !== 'all') return form
  const { nodes } = whole
  const literals = nodes.map((node) => literalOf(node) ?? '\n').join('')
  const [start, scheme, host] = /^([a-z][a-z\d+.-]*):\/\/([a-z\d-]+(?:\.[a-z\d-]+)*)/i.exec(literals) ?? []
  // A `.` that is not escaped matches any character, so it is no literal.
  if (start === undefined) return form
  const tail = nodes.slice(start.length)
  const afterPort = isOneOf(':', tail[0]) ? tail.findIndex((node, index) => index > 0 && !holdsOnly(node, ofPorts)) : 0
  const after = afterPort < 0 ? undefined : tail[afterPort]
  if (after !== undefined && !isOneOf('/?', after)) return form
  return redirectUri(`${scheme}://${host}/`)
}

/** What may follow one end of an expression. */
type End = { follow: bigint }
type Seen = { readonly isEmpty: boolean; readonly first: bigint; readonly ends: readonly End[] }

class Ambiguous extends Error {}

function ambiguity(whole: Node): string | undefined {
  try {
    walk(whole, 1)
    return undefined
  } catch (error) {
    if (error instanceof Ambiguous) return error.message
    throw error
  }
}

/** @param times how often what it is part of is written out @throws {Ambiguous} */
function walk(node: Node, times: number): Seen {
  switch (node.is) {
    case 'one':
      return { isEmpty: false, first: node.characters, ends: [{ follow: 0n }] }
    case 'all':
      return node.nodes.reduce<Seen>(
        (before, each) => {
          const next = walk(each, times)
          if (before.isEmpty) disjoint(before.first, next.first, each)
          meet(before.ends, next.first, each)
          return {
            isEmpty: before.isEmpty && next.isEmpty,
            first: before.isEmpty ? before.first | next.first : before.first,
            ends: next.isEmpty ? [...before.ends, ...next.ends] : next.ends,
          }
        },
        { isEmpty: true, first: 0n, ends: [] },
      )
    case 'either':
      return node.nodes.reduce<Seen>(
        (before, each) => {
          const next = walk(each, times)
          disjoint(before.first, next.first, node)
          if (before.isEmpty && next.isEmpty) throw ambiguous(node)
          return {
            isEmpty: before.isEmpty || next.isEmpty,
            first: before.first | next.first,
            ends: [...before.ends, ...next.ends],
          }
        },
        { isEmpty: false, first: 0n, ends: [] },
      )
    case 'repeat': {
      const { least, most } = node
      const copies = times * Math.max(1, most === Infinity ? least : most)
      if (copies > maxRepeats) throw new Ambiguous(`May repeat a part at most ${maxRepeats} times: ${node.text}.`)
      const seen = walk(node.node, copies)
      if (seen.isEmpty) throw ambiguous(node)
      if (most > 1) meet(seen.ends, seen.first, node)
      return { ...seen, isEmpty: least === 0 }
    }
    default:
      return node satisfies never
  }
}

function disjoint(one: bigint, other: bigint, node: Node): void {
  if ((one & other) !== 0n) throw ambiguous(node)
}

function meet(ends: readonly End[], first: bigint, node: Node): void {
  for (const end of ends) {
    disjoint(end.follow, first, node)
    end.follow |= first
  }
}

const ambiguous = ({ text }: Node) =>
  new Ambiguous(
    `May not match the same text in two ways, which can take for ever: at ${text}, the next character must decide what goes on. Write [^/]+/cb instead of .*/cb, [a-z]+ instead of ([a-z]+)*, and (?:a|b) only with alternatives that begin differently.`,
  )
