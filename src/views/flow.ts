import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

export const flowView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_flows.flow',
    model: 'Flow',
    columns: { name: 'name', slug: 'slug', title: 'title', designation: 'designation' },
    find: (tx, query) => tx.flow.findMany(query),
  })
