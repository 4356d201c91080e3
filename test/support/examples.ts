import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

const examples = new URL('../../examples/', import.meta.url)

/** The provider kinds, each with its shipped example. */
export const kinds = readdirSync(examples)
  .filter((file) => file.endsWith('.json'))
  .map((file) => file.replace('.json', ''))
  .sort()
export type Kind = string

/** Fields of the application and of its provider; `undefined` removes one. */
export type Changes = {
  app?: Record<string, unknown> | undefined
  provider?: Record<string, unknown> | undefined
}
export type Body = { app: Record<string, unknown>; provider_model: string; provider: Record<string, unknown> }

/** The shipped example of a kind, with other fields. */
export async function example(kind: Kind, changes: Changes = {}): Promise<Body> {
  const shipped: Body = JSON.parse(await readFile(new URL(`${kind}.json`, examples), 'utf8'))
  return { ...shipped, app: { ...shipped.app, ...changes.app }, provider: { ...shipped.provider, ...changes.provider } }
}

/** The example under a name of its own, so that tests of one installation do not meet. */
export const named = (kind: Kind, name: string, changes: Changes = {}): Promise<Body> =>
  example(kind, {
    app: { slug: name, ...changes.app },
    provider: { name, ...(kind === 'oauth2' && { client_id: `client-${name}` }), ...changes.provider },
  })
