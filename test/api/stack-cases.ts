import { randomUUID } from 'node:crypto'
import { anApplication, answered, aProvider, type Entry, type installation } from '../support/kit.ts'

/** Entries and answers that the tests of stacks share. */

export const fresh = (word = 'stack'): string => `${word}-${randomUUID().slice(0, 8)}`
export const application = (slug: string, attrs: object = { name: 'A' }): Entry => anApplication(slug, attrs)
export const group = (name: string, attrs: object = {}): Entry => ({
  model: 'service_core.group',
  identifiers: { name },
  attrs,
})
export const role = (name: string): Entry => ({ model: 'service_rbac.role', identifiers: { name }, attrs: {} })

export const scim = (name: string): Entry => aProvider('scim', name, { url: 'https://scim.example', token: name })

export type Member = { model: string; name: string; fields: string[]; left_at: string | null }

type Stack = {
  size: number
  left_over: number
  run: string | null
  run_before: string | null
  owners: string[]
  members: Member[]
}

/** Reads stacks as the first admin. */
export function readerOf({ admin }: Awaited<ReturnType<typeof installation>>) {
  const stackOf = async (name: string): Promise<Stack> =>
    (await answered(200, admin.get(`/api/v3/blueprints/stacks/${encodeURIComponent(name)}/`))).json as Stack
  return { stackOf, namesIn: async (name: string) => (await stackOf(name)).members.map((each) => each.name) }
}
