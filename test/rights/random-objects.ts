import { randomUUID } from 'node:crypto'
import type { Entry } from '../../src/document/document.ts'
import { type Conditions, nothingAllowed } from '../../src/plan/engine.ts'
import { application, scim } from '../apply/engine.ts'
import type { Seen, SeenObject } from './oracle.ts'
import { labels, type Pick } from './random-world.ts'

/** Random writes of applications and providers, under any label, of what is there under any other. */

export const objectKinds = ['submission', 'object change', 'object delete', 'object link'] as const
export type ObjectKind = (typeof objectKinds)[number]

type Sent = { readonly entries: Partial<Entry>[]; readonly conditions: Partial<Conditions> }

const models: Readonly<Record<string, string>> = {
  application: 'service_core.application',
  scimprovider: 'service_providers_scim.scimprovider',
}

const byKey = ({ resource, key }: SeenObject): ByKey => ({
  model: models[resource] ?? '',
  identifiers: { pk: resource === 'application' ? key : Number(key) },
})
type ByKey = { readonly model: string; readonly identifiers: Readonly<Record<string, unknown>> }

const changes: Readonly<Record<string, () => Readonly<Record<string, unknown>>>> = {
  application: () => ({ meta_description: randomUUID() }),
  scimprovider: () => ({ url: `https://example.com/${randomUUID()}` }),
}

export function writesOf(kind: ObjectKind, { objects }: Seen, pick: Pick): Sent {
  const all = [...objects.values()]
  const [applications, providers] = ['application', 'scimprovider'].map((resource) =>
    all.filter((each) => each.resource === resource),
  )
  const name = randomUUID()
  const owner = pick([true, false]) ? pick(labels) : (pick([...all, undefined])?.owner ?? null)
  const under = (label: string | null): Partial<Conditions> => ({
    owner: label,
    allow: { ...nothingAllowed, grants: true, takeover: pick([true, false]) },
  })
  /** Most often under its own label: else it is another owner's. */
  const of = (object: SeenObject) => under(pick([object.owner, object.owner, owner]))
  const some = (from: readonly SeenObject[] | undefined = []) => (from.length === 0 ? undefined : pick(from))
  const fresh = {
    entries: pick([true, false]) ? [scim(name)] : [scim(name), application(name)],
    conditions: under(owner),
  }
  switch (kind) {
    case 'submission':
      return fresh
    case 'object change': {
      const object = some(all)
      if (object === undefined) return fresh
      return { entries: [{ ...byKey(object), attrs: changes[object.resource]?.() ?? {} }], conditions: of(object) }
    }
    case 'object delete': {
      const object = some(all)
      if (object === undefined) return fresh
      return { entries: [{ ...byKey(object), state: 'absent' }], conditions: of(object) }
    }
    case 'object link': {
      const [object, provider] = [some(applications), some(providers)]
      if (object === undefined) return fresh
      const kept = pick([true, false]) ? object.claims.map(Number) : []
      const linked = [...new Set([...kept, ...(provider === undefined ? [] : [Number(provider.key)])])]
      return { entries: [{ ...byKey(object), attrs: { backchannel_providers: linked } }], conditions: of(object) }
    }
    default:
      return kind satisfies never
  }
}
