import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

export const roleView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_rbac.role',
    model: 'Role',
    columns: { name: 'name', permissions: 'permissions', owners: 'owners' },
    find: (tx, query) => tx.role.findMany(query),
  })
