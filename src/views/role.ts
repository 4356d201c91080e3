import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

const select = { pk: true, name: true, permissions: true, owners: true } satisfies Prisma.RoleSelect

export const roleView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_rbac.role',
    model: 'Role',
    columns: { name: 'name', permissions: 'permissions', owners: 'owners' },
    find: (tx: Tx, keys: string[]) => tx.role.findMany({ where: { pk: { in: keys } }, select }),
  })
