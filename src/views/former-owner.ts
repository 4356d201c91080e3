import { z } from 'zod'
import { type Change, notShown } from '../apply/changes.ts'
import type { Db, Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { type Actor, ownersShown } from '../permissions.ts'

/** The state of an object while another owner managed it, for callers whose rights are bound to owners. */

type Fields = Change['fields']

/** Whether the change took the object over from an owner whose objects the caller does not see. */
export function wasAnothers({ owner }: Fields, owners: readonly string[]): boolean {
  return typeof owner === 'object' && !owners.includes(String(owner.from))
}

export const withoutFrom = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, each]) => [name, typeof each === 'string' ? each : { ...each, from: notShown }]),
  )

/** The changes of a run without the parts that the caller may not know. */
export function changesShown(changes: readonly Change[], actor: Actor): Change[] {
  const owners = ownersShown(actor)
  return changes.map((each) =>
    owners !== null && wasAnothers(each.fields, owners) ? { ...each, fields: withoutFrom(each.fields) } : each,
  )
}

/** A log has sentences without references to objects: it is shown as a whole or not at all. */
export const logNotShown = 'The log is not shown: it names what another owner manages, or managed.'

/**
 * Finds the runs whose logs the caller may not read: those that took an object over, as `wasAnothers` decides; and of other
 * submitters, those that deleted with `takeover`, and those that were refused because of a conflict.
 */
export async function runsWithHiddenLogs(
  db: Db | Tx,
  ids: readonly string[],
  actor: Actor,
): Promise<ReadonlySet<string>> {
  const owners = ownersShown(actor)
  if (owners === null || ids.length === 0) return new Set()
  const found = await query(db, z.object({ id: z.guid() }), { text: hiddenText, values: [ids, owners, actor.pk] })
  return new Set(found.map(({ id }) => id))
}

const hiddenText = `SELECT r.id FROM runs r WHERE r.id = ANY ($1::uuid[]) AND (
    EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(r.changes) WHEN 'array' THEN r.changes ELSE '[]' END) e
      WHERE jsonb_typeof(e.value #> '{fields,owner}') = 'object'
        AND (e.value #>> '{fields,owner,from}' = ANY ($2::text[])) IS NOT TRUE)
    OR r.submitter_pk IS DISTINCT FROM $3::integer AND (r.reason = 'conflict'
      OR r.options #> '{allow,takeover}' = 'true' AND jsonb_path_exists(r.changes, '$[*] ? (@.action == "delete")')))`
