import prototypes from 'unhomoglyph/data.json' with { type: 'json' }
import { comparedName, isAscii } from '../names.ts'

/**
 * What a name looks like: two names with one skeleton look alike (UTS 39, section 4, on the data that Unicode has for it).
 * Upper case is looked at before it is folded, because К looks like K, and к like no letter of ASCII. I, i, l and 1 are one.
 */
export function skeletonOf(name: string): string {
  const seen = looks(name.normalize('NFKD'))
  return looks(comparedName(seen).normalize('NFD'))
    .replaceAll('i', 'l')
    .replaceAll(/(?<=l|j)\u0307/g, '')
}

const data: Readonly<Record<string, string>> = prototypes
const prototypeOf: ReadonlyMap<string, string> = new Map(Object.entries(data))

const looks = (text: string): string =>
  [...text.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')]
    .map((character) => prototypeOf.get(character) ?? character)
    .join('')
    .normalize('NFD')

/**
 * Whether a reader would take one name for the other. Two names of ASCII alone never count: a service with numbered users
 * has paul1 and paull, and each keyboard writes both (docs/adr/0061-how-names-compare.md).
 */
export const lookAlike = (one: string, other: string): boolean =>
  !(isAscii(one) && isAscii(other)) && skeletonOf(one) === skeletonOf(other)

/** The locks under which a name is compared with all that are it, or look like it. Names of ASCII have one of these alone. */
export const namesToLock = (name: string): string[] =>
  isAscii(name) ? [skeletonOf(name)] : [skeletonOf(name), comparedName(name)]
