import { z } from 'zod'
import type { Db, Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { withExample } from '../example.ts'
import { inOrder, type Key, type View } from './view.ts'

/** The audit: a row for each apply, write, act on the queue, and read while impersonating, with its user. */

/** An apply writes up to 10 000 objects, and a page has up to 1 000 rows. */
const mostChanges = 100

export const person = z.object({ pk: z.int().nullable(), username: z.string() })

const audited = z
  .object({
    model: withExample(z.string(), 'service_core.group'),
    key: z.union([z.string(), z.int()]).meta({ description: 'The primary key.' }),
    name: z
      .string()
      .optional()
      .meta({ description: 'The name of the object afterwards, of a change that was written.' }),
    action: z.string().meta({ description: 'Such as `create`, `update`, `delete`, `view_key` or `read`.' }),
    fields: z.array(z.string()).meta({ description: 'Names of the fields that were written or read.' }),
    value: z.union([z.boolean(), z.number()]).optional().meta({ description: 'What an act on the queue has set.' }),
    reason: z.string().optional().meta({ description: 'The reason of an act on the queue.' }),
  })
  .meta({ id: 'AuditedChange' })

export const auditEntry = z
  .object({
    id: withExample(z.string(), '4711', 'Of the row. Later rows have greater ids, about.'),
    at: z.iso.datetime(),
    action: withExample(
      z.string(),
      'apply',
      'The whole: `apply`, `create`, `update`, `delete`, `view_key`, `read`, `pause_queue`, `resume_queue`, ...',
    ),
    user: person.meta({ description: 'The effective user, as it was called then. `pk` is null for the service.' }),
    real_user: withExample(person.nullable(), null, 'Who impersonated the user.'),
    changes: z.array(audited).meta({
      description: `What was done to which objects: the first ${mostChanges}. Never a value of a field.`,
    }),
    change_count: withExample(z.int(), 1, 'All of them. The run has what is left out.'),
    request_id: z.string().nullable(),
    run: z.guid().nullable().meta({ description: 'The run that did it; null for a request for one object.' }),
  })
  .meta({ id: 'AuditEntry' })

const row = auditEntry.extend({ at: z.date() })

/** Reads rows. Only the changes that are shown leave the database, without what histories have of them but the name: it has values. */
const rowsText = `SELECT pk::text AS id, at, action, jsonb_build_object('pk', actor_pk, 'username', actor_name) AS "user",
    CASE WHEN real_name IS NOT NULL THEN jsonb_build_object('pk', real_pk, 'username', real_name) END AS real_user,
    coalesce((SELECT jsonb_agg((each - 'object') || jsonb_strip_nulls(jsonb_build_object('name', each #> '{object,name}')))
      FROM jsonb_path_query(changes, '$[0 to ${mostChanges - 1}]') each), '[]') AS changes,
    jsonb_array_length(changes) AS change_count, request_id, run_id AS run
  FROM audit_rows WHERE pk = ANY ($1::bigint[])`

export type AuditEntry = z.output<typeof auditEntry>

export async function readAuditEntries(db: Db | Tx, keys: readonly Key[]): Promise<AuditEntry[]> {
  const rows = await query(db, row, { text: rowsText, values: [keys.map(String)] })
  const inTheirOrder = inOrder(keys.map(String), rows, ({ id }) => id)
  return inTheirOrder.map((entry) => ({ ...entry, at: entry.at.toISOString() }))
}

export const auditView: View<'AuditRow'> = {
  model: 'AuditRow',
  schema: auditEntry,
  async *read(tx: Tx, keys) {
    yield await readAuditEntries(tx, keys)
  },
}
