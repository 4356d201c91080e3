/**
 * Compares names wherever only one row may have a name: compatible characters are equal (NFKC), case is folded by Unicode's table
 * in every locale, and blanks count once and not at the ends. PostgreSQL's function `compared_name` does the same, and indexes
 * hold its result; a test compares both over all characters. Names are stored as they were sent
 * (docs/adr/0061-how-names-compare.md).
 */
export function comparedName(name: string): string {
  const letters = ascii.test(name)
    ? name.toLowerCase()
    : [...name.normalize('NFKD')].map(folded).join('').normalize('NFKC')
  return withSingleBlanks(letters)
}

const withSingleBlanks = (text: string): string =>
  /[\t\n\v\f\r ]/.test(text) ? text.replaceAll(/[\t\n\v\f\r ]+/g, ' ').replace(/^ | $/g, '') : text

/** The ways in which two equal names may be written differently, and how each is undone. */
const ways: readonly (readonly [name: string, without: (name: string) => string])[] = [
  ['case', (name) => [...name].map(folded).join('')],
  ['width', (name) => name.normalize('NFKC')],
  ['repeated blanks', withSingleBlanks],
]

/** The ways in which two names of one row are written differently, in words: `case and width`. */
export function writtenApart(one: string, other: string): string {
  const without = (name: string, left: string) =>
    ways.reduce((text, [way, undo]) => (way === left ? text : undo(text)), name)
  const apart = ways.map(([way]) => way).filter((way) => without(one, way) !== without(other, way))
  // A ligature becomes two letters in upper case, and in another width.
  const named = apart.length > 0 ? apart : ways.map(([way]) => way)
  return named.length < 2 ? named.join() : `${named.slice(0, -1).join(', ')} and ${named.at(-1)}`
}

const ascii = /^[\0-\x7f]*$/

/** Letters whose two cases are no pair: case folding keeps the dotless i. */
const special: ReadonlyMap<string, string> = new Map([
  ['ß', 'ss'],
  ['ẞ', 'ss'],
  ['ı', 'ı'],
  ...['\u0085', '\u1680', '\u2028', '\u2029'].map((blank) => [blank, ' '] as const),
])

/**
 * A decomposed character with its case folded. It passes through upper case, so that all forms of a letter are equal, as σ and ς.
 */
const folded = (character: string): string => special.get(character) ?? character.toUpperCase().toLowerCase()
