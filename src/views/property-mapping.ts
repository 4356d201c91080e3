import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

const select = {
  pk: true,
  name: true,
  kind: true,
  expression: true,
  managed: true,
  scopeName: true,
} satisfies Prisma.PropertyMappingSelect

export const propertyMappingView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_mappings.propertymapping',
    model: 'PropertyMapping',
    columns: { name: 'name', kind: 'kind', expression: 'expression', managed: 'managed', scope_name: 'scopeName' },
    find: (tx: Tx, keys: string[]) => tx.propertyMapping.findMany({ where: { pk: { in: keys } }, select }),
  })
