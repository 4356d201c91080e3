import { z } from 'zod'
import type { Queryable } from '../db/client.ts'
import { byKey, rowsByKey } from './rows.ts'
import type { Row } from './view.ts'

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

export const summaryColumns = 'g.pk, g.num_pk, g.name, g.is_superuser, g.parent, p.name AS parent_name, g.attributes'

export const groupRows = {
  table: 'groups',
  alias: 'g',
  columns: summaryColumns,
  joins: 'LEFT JOIN groups p ON p.pk = g.parent',
} as const

/** The summaries of these groups, by key. */
export const groupSummaries = async (
  q: Queryable,
  keys: readonly (string | number)[],
): Promise<ReadonlyMap<unknown, Row>> => (keys.length === 0 ? new Map() : byKey(await rowsByKey(q, groupRows, keys)))
