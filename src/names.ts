/**
 * How names compare wherever one row alone may have a name: compatible characters are one (NFKC), case is folded by
 * Unicode's table, whatever the locale, and blanks count once and not at the ends. PostgreSQL's function `compared_name`
 * does the same, and indexes hold what it returns; a test compares both over all characters. Names are stored as they were
 * sent (docs/adr/0061-how-names-compare.md).
 */
export function comparedName(name: string): string {
  const letters = isAscii(name)
    ? name.toLowerCase()
    : [...name.normalize('NFKD')].map(folded).join('').normalize('NFKC')
  return letters.replaceAll(/[\t\n\v\f\r ]+/g, ' ').replace(/^ | $/g, '')
}

const ascii = /^[\0-\x7f]*$/

/** @returns whether no letter can look like one of another script */
export const isAscii = (text: string): boolean => ascii.test(text)

/** Letters whose two cases are no pair: case folding leaves the dotless i as it is. */
const special: ReadonlyMap<string, string> = new Map([
  ['ß', 'ss'],
  ['ẞ', 'ss'],
  ['ı', 'ı'],
  ...['\u0085', '\u1680', '\u2028', '\u2029'].map((blank) => [blank, ' '] as const),
])

/** A decomposed character, folded: by way of its upper case, so that all forms of a letter are one, as σ and ς. */
const folded = (character: string): string => special.get(character) ?? character.toUpperCase().toLowerCase()
