import { createHash } from 'node:crypto'

/** A statement with parameters. Under a name it is parsed and planned once per connection, then only bound. */
export type Statement = {
  readonly name: string | undefined
  readonly text: string
  readonly values: readonly unknown[]
}

const names = new Map<string, string>()

/** The statement's name is its text's digest, so equal texts share one plan. */
export function statement(text: string, values: readonly unknown[]): Statement {
  let name = names.get(text)
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('base64url').slice(0, 22)
    names.set(text, name)
  }
  return { name, text, values }
}

/** For texts of many shapes, which would fill a connection with plans. */
export const unprepared = (text: string, values: readonly unknown[]): Statement => ({ name: undefined, text, values })

/** `` sql`SELECT pk FROM users WHERE username = ${name}` ``: each value is a parameter, never text. */
export function sql(strings: TemplateStringsArray, ...values: unknown[]): Statement {
  let known = tagged.get(strings)
  if (known === undefined) {
    known = statement(
      strings.reduce((text, part, index) => `${text}$${index}${part}`),
      [],
    )
    tagged.set(strings, known)
  }
  return { ...known, values }
}

/** By the place in the source, which is one array however often it is passed. */
const tagged = new WeakMap<TemplateStringsArray, Statement>()
