import { randomUUID } from 'node:crypto'
import type { Entry } from '../../src/document/document.ts'
import type { Actor } from '../../src/permissions.ts'
import { type Conditions, nothingAllowed } from '../../src/plan/engine.ts'
import { application, scim } from '../apply/engine.ts'
import { has, type Seen, type SeenObject } from './oracle.ts'
import { labels, type Pick } from './random-world.ts'

/** Random writes of applications and providers, under any label, of what is there under any other. */

export const objectKinds = ['submission', 'object change', 'object delete', 'object link', 'object prune'] as const
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

export function writesOf(kind: ObjectKind, { objects }: Seen, { permissions }: Actor, pick: Pick): Sent {
  const there = [...objects.values()]
  const own = there.filter(({ resource, owner }) =>
    has(permissions, `change_${resource}${owner === null ? '' : `@${owner}`}`),
  )
  /** More often what the caller may change: else most would be refused. */
  const all = own.length === 0 ? there : pick([there, own, own])
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
    conditions: { ...under(owner), stack: pick([null, owner]) },
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
      const claimed = new Set(there.flatMap(({ claims }) => claims))
      const free = providers?.filter(({ key }) => !claimed.has(key))
      const [object, provider] = [some(applications), some(pick([free, providers]))]
      if (object === undefined) return fresh
      const kept = pick([true, false]) ? object.claims.map(Number) : []
      const linked = [...new Set([...kept, ...(provider === undefined ? [] : [Number(provider.key)])])]
      return { entries: [{ ...byKey(object), attrs: { backchannel_providers: linked } }], conditions: of(object) }
    }
    case 'object prune': {
      const isOwn = ({ resource, owner }: SeenObject) =>
        has(permissions, `delete_${resource}${owner === null ? '' : `@${owner}`}`)
      const stacks = there.flatMap((each) => (each.stack !== null && isOwn(each) ? [each.stack] : []))
      if (stacks.length === 0) return { ...fresh, conditions: { ...fresh.conditions, stack: owner ?? 'team-one' } }
      const label = pick(stacks)
      const deletes = there.filter((each) => each.stack === label).length
      const none = { model: 'service_core.application', identifiers: { slug: 'none' }, state: 'absent' } as const
      const conditions = under(label)
      const allow = { ...nothingAllowed, ...conditions.allow, deletes: pick([deletes, deletes, null]) }
      return { entries: [none], conditions: { ...conditions, allow, stack: label } }
    }
    default:
      return kind satisfies never
  }
}
