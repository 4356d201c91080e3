import type { Model } from '../models/define.ts'

/** The sets of fields, among those that an entry names, that find one row. */
export const waysToFind = ({ identifiers, unique }: Model, named: readonly string[]): readonly (readonly string[])[] =>
  [['pk'], ...identifiers, ...unique.map((name) => [name])].filter((way) => way.every((name) => named.includes(name)))
