import { sha256 } from '../ids.ts'

/** A statement with parameters. Under a name it is parsed and planned once per connection, then only bound. */
export type Statement = {
  readonly name: string | undefined
  readonly text: string
  readonly values: readonly unknown[]
}

const names = new Map<string, string>()

const nameOf = (text: string): string => sha256(text).toString('base64url').slice(0, 22)

/** The statement's name is its text's digest, so equal texts share one plan. */
export function statement(text: string, values: readonly unknown[]): Statement {
  return { name: names.getOrInsertComputed(text, nameOf), text, values }
}

/** For texts of many shapes, which would fill a connection with plans. */
export const unprepared = (text: string, values: readonly unknown[]): Statement => ({ name: undefined, text, values })

/** `` sql`SELECT pk FROM users WHERE username = ${name}` ``: each value is a parameter, never text. */
export function sql(strings: TemplateStringsArray, ...values: unknown[]): Statement {
  return { ...tagged.getOrInsertComputed(strings, toStatement), values }
}

function toStatement(strings: TemplateStringsArray): Statement {
  const text = strings.reduce((before, part, index) => `${before}$${index}${part}`)
  return statement(text, [])
}

/** By the place in the source, which is one array however often it is passed. */
const tagged = new WeakMap<TemplateStringsArray, Statement>()
