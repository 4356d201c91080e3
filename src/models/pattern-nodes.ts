/** Expressions as trees, for the checks of a redirect pattern. */

/** Characters: a bit for each of ASCII, and one for all others. Upper case counts as lower case. */
export type Characters = bigint

export type Node =
  | { readonly is: 'one'; readonly text: string; readonly characters: Characters }
  | { readonly is: 'all' | 'either'; readonly text: string; readonly nodes: readonly Node[] }
  | { readonly is: 'repeat'; readonly text: string; readonly node: Node; readonly least: number; readonly most: number }

/** Why a pattern is refused. */
export class Refused extends Error {}

/** Parts of a valid expression: an escape, a class, a quantifier with its `?`, the start of a group, or one character. */
export const partsOf = (text: string): readonly string[] =>
  text.match(/\\.|\[(?:\\.|[^\]\\])*\]|(?:[*+?]|\{\d+(?:,\d*)?\})\??|\((?:\?(?:P?<\w+>|[a-zA-Z^-]*[:)]))?|[\s\S]/g) ??
  []

/** @param parts the parts of a valid expression, all of them portable */
export function parse(parts: readonly string[]): Node {
  const known = new Map<string, Characters>()
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
    // A pattern matches more without its anchors, and is checked so.
    if (part === '^' || part === '$') return { is: 'all', text: part, nodes: [] }
    let node: Node
    if (part.startsWith('(')) {
      node = either()
      at += 1
    } else {
      node = { is: 'one', text: part, characters: known.getOrInsertComputed(part, charactersOf) }
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

/** @param part a character or a class of an expression */
export function charactersOf(part: string): Characters {
  const one = new RegExp(`^(?:${part})$`, 'i')
  let found = one.test('\u00e9') || one.test('\u00a0') ? 1n << 128n : 0n
  for (let code = 0; code < 128; code += 1) {
    const character = String.fromCharCode(code)
    if (character === character.toLowerCase() && one.test(character)) found |= 1n << BigInt(code)
  }
  return found
}

/** All characters of which its matches are made. */
export function allCharacters(node: Node): Characters {
  if (node.is === 'one') return node.characters
  const nodes = node.is === 'repeat' ? [node.node] : node.nodes
  return nodes.reduce((found, each) => found | allCharacters(each), 0n)
}
