import { z } from 'zod'
import type { Queryable } from '../db/client.ts'
import { rowsByKey } from './rows.ts'

/** A group as its members show it. */

export const groupSummary = z.object({
  pk: z.guid(),
  num_pk: z.int(),
  name: z.string(),
  is_superuser: z.boolean(),
  parent: z.guid().nullable(),
  parent_name: z.string().nullable(),
  attributes: z.record(z.string(), z.unknown()),
})

export const summaryColumns =
  'g.pk, g.num_pk, g.name, g.is_superuser, g.parent, p.name AS parent_name, g.attributes::text AS attributes'

export const groupRows = {
  table: 'groups',
  alias: 'g',
  columns: summaryColumns,
  joins: 'LEFT JOIN groups p ON p.pk = g.parent',
} as const

/** The summaries of these groups as JSON, by key: many users show the same. */
export async function groupSummaries(
  q: Queryable,
  keys: readonly (string | number)[],
): Promise<ReadonlyMap<unknown, string>> {
  const rows = keys.length === 0 ? [] : await rowsByKey(q, groupRows, keys)
  return new Map(rows.map(({ attributes, ...row }) => [row.pk, summaryText(row, String(attributes))]))
}

/** The attributes are JSON as it is: nobody here looks into them. */
const summaryText = (row: object, attributes: string) =>
  `${JSON.stringify(row).slice(0, -1)},"attributes":${attributes}}`
