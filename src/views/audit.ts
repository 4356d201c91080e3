import { z } from 'zod'
import type { Db, Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { withExample } from '../example.ts'
import { inOrder, type Key, type View } from './view.ts'

/** The audit: a row for each apply, write, act on the queue, and read while impersonating, with its user. */

/** An apply writes up to 10 000 objects, and a page has up to 1 000 rows. */
const mostChanges = 100

const person = z.object({ pk: z.int().nullable(), username: z.string() })

const audited = z
  .object({
    model: withExample(z.string(), 'service_core.group'),
    key: z.union([z.string(), z.int()]).meta({ description: 'The primary key.' }),
    action: z.string().meta({ description: 'Such as `create`, `update`, `delete`, `view_key` or `read`.' }),
    fields: z.array(z.string()).meta({ description: 'Names of the fields that were written or read.' }),
    value: z.union([z.boolean(), z.number()]).optional().meta({ description: 'Of an act on the queue: what was set.' }),
    reason: z.string().optional().meta({ description: 'Of an act on the queue: why.' }),
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
      description: `What was done to which objects: the first ${mostChanges}. Never a value of an object.`,
    }),
    change_count: withExample(z.int(), 1, 'All of them. The run has what is left out.'),
    request_id: z.string().nullable(),
    run: z.guid().nullable().meta({ description: 'The run that did it; null for a request for one object.' }),
  })
  .meta({ id: 'AuditEntry' })

const row = z.object({
  pk: z.string(),
  at: z.date(),
  action: z.string(),
  requestId: z.string().nullable(),
  run: z.guid().nullable(),
  actorPk: z.int().nullable(),
  actorName: z.string(),
  realPk: z.int().nullable(),
  realName: z.string().nullable(),
  changes: z.array(audited),
  count: z.int(),
})

/** Reads rows. Only the changes that are shown leave the database, without what histories have of them: it has values. */
const rowsText = `SELECT pk::text, at, action, request_id AS "requestId", run_id AS run,
    actor_pk AS "actorPk", actor_name AS "actorName", real_pk AS "realPk", real_name AS "realName",
    coalesce((SELECT jsonb_agg(each - 'object') FROM jsonb_path_query(changes, '$[0 to ${mostChanges - 1}]') each), '[]') AS changes,
    jsonb_array_length(changes) AS count
  FROM audit_rows WHERE pk = ANY ($1::bigint[])`

const toEntry = ({ pk, at, action, changes, count, requestId, run, ...each }: z.output<typeof row>) =>
  ({
    id: pk,
    at: at.toISOString(),
    action,
    user: { pk: each.actorPk, username: each.actorName },
    real_user: each.realName === null ? null : { pk: each.realPk, username: each.realName },
    changes,
    change_count: count,
    request_id: requestId,
    run,
  }) satisfies AuditEntry

export type AuditEntry = z.output<typeof auditEntry>

export async function readAuditEntries(db: Db | Tx, keys: readonly Key[]): Promise<AuditEntry[]> {
  const rows = await query(db, row, { text: rowsText, values: [keys.map(String)] })
  return inOrder(keys.map(String), rows, ({ pk }) => pk).map(toEntry)
}

export const auditView: View<'AuditRow'> = {
  model: 'AuditRow',
  schema: auditEntry,
  async *read(tx: Tx, keys) {
    yield await readAuditEntries(tx, keys)
  },
}
