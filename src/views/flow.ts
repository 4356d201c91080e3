import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

const select = { pk: true, name: true, slug: true, title: true, designation: true } satisfies Prisma.FlowSelect

export const flowView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_flows.flow',
    model: 'Flow',
    columns: { name: 'name', slug: 'slug', title: 'title', designation: 'designation' },
    find: (tx: Tx, keys: string[]) => tx.flow.findMany({ where: { pk: { in: keys } }, select }),
  })
