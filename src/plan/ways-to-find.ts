import type { Model } from '../models/define.ts'

/** The sets of fields that find one row, of those that an entry names. */
export const waysToFind = ({ identifiers, unique }: Model, named: readonly string[]): readonly (readonly string[])[] =>
  [['pk'], ...identifiers, ...unique.map((name) => [name])].filter((way) => way.every((name) => named.includes(name)))
