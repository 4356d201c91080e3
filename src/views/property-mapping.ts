import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

export const propertyMappingView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_mappings.propertymapping',
    model: 'PropertyMapping',
    columns: { name: 'name', kind: 'kind', expression: 'expression', managed: 'managed', scope_name: 'scopeName' },
    find: (tx, query) => tx.propertyMapping.findMany(query),
  })
