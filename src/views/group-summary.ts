import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { isObject } from '../json-object.ts'

/** A group as its members show it. */

export const groupSummary = z
  .object({
    pk: withExample(z.guid(), '01a1fd66-1f20-7c11-8a30-5b6f3f2d9a01'),
    num_pk: withExample(z.int(), 12),
    name: withExample(z.string(), 'platform'),
    is_superuser: withExample(z.boolean(), false),
    parent: withExample(z.guid(), '01a1fd66-1f20-7c11-8a30-5b6f3f2d9a00').nullable(),
    parent_name: withExample(z.string(), 'engineering').nullable(),
    attributes: withExample(z.record(z.string(), z.unknown()), { cost_center: 4711 }),
  })
  .meta({ id: 'GroupSummary' })

export type GroupSummary = z.output<typeof groupSummary>

export const groupSummarySelect = {
  pk: true,
  numPk: true,
  name: true,
  isSuperuser: true,
  parentPk: true,
  parent: { select: { name: true } },
  attributes: true,
} satisfies Prisma.GroupSelect

type GroupSummaryRow = Prisma.GroupGetPayload<{ select: typeof groupSummarySelect }>

export const toGroupSummary = (row: GroupSummaryRow): GroupSummary => ({
  pk: row.pk,
  num_pk: row.numPk,
  name: row.name,
  is_superuser: row.isSuperuser,
  parent: row.parentPk,
  parent_name: row.parent?.name ?? null,
  attributes: toAttributes(row.attributes),
})

/** Attributes are written as objects only. */
export const toAttributes = (stored: Prisma.JsonValue): Record<string, unknown> => (isObject(stored) ? stored : {})

/** The summaries of these groups, each made once for all users that show it. */
export async function readGroupSummaries(
  tx: Tx,
  keys: ReadonlySet<string>,
): Promise<ReadonlyMap<string, GroupSummary>> {
  if (keys.size === 0) return new Map()
  const rows = await tx.group.findMany({ where: { pk: { in: [...keys] } }, select: groupSummarySelect })
  return new Map(rows.map((row) => [row.pk, toGroupSummary(row)]))
}

/** The groups among these that make superusers of their members: by their own flag, or by that of a group above. */
export async function readSuperuserGroups(tx: Tx, keys: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  if (keys.size === 0) return new Set()
  const rows = await tx.groupAncestor.findMany({
    where: { groupPk: { in: [...keys] }, ancestor: { isSuperuser: true } },
    select: { groupPk: true },
  })
  return new Set(rows.map(({ groupPk }) => groupPk))
}
