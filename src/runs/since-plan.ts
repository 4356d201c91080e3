import { z } from 'zod'
import { type ObjectName, objectIn } from '../apply/apply.ts'
import type { Objection } from '../apply/finding.ts'
import { Refusal } from '../apply/refusal.ts'
import { maxListed } from '../apply/words.ts'
import type { EngineReader } from '../db/engine-tx.ts'
import { type Actor, type ActorKeys, mayNameUser } from '../permissions.ts'
import { currentActor } from '../rights/actor.ts'
import { mayReadRun, type StandsSince } from './options.ts'

/** Changes of the objects of a plan after its review: by which run, by which user, and when. */

const lastRow = z.object({
  position: z.int(),
  at: z.date(),
  runId: z.guid().nullable(),
  submitterPk: z.int().nullable(),
  options: z.unknown(),
  actorPk: z.int().nullable(),
  actorName: z.string(),
})
type Last = z.output<typeof lastRow>

/** The last recorded change of each object, as far as there is one. */
async function lastChanges(reader: EngineReader, objects: readonly ObjectName[]): Promise<Map<number, Last>> {
  const rows = await reader.query(lastRow, {
    text: lastText,
    values: [objects.map(({ model }) => model), objects.map(({ key }) => key), objects.map(({ name }) => name)],
  })
  return new Map(rows.map((row) => [row.position, row]))
}

const lastOf = (condition: string) =>
  `(SELECT r.audit_pk, r.at, r.run_id FROM run_objects r WHERE r.model = o.model AND ${condition}
      ORDER BY r.audit_pk DESC LIMIT 1)`

const lastText = `SELECT (o.position - 1)::integer AS position, l.at, l.run_id AS "runId", r.submitter_pk AS "submitterPk",
    coalesce(r.options, '{}'::jsonb) AS options, a.actor_pk AS "actorPk", a.actor_name AS "actorName"
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS o(model, key, name, position),
    LATERAL (${lastOf('r.key = o.key')} UNION ALL ${lastOf('o.key IS NULL AND r.name = o.name')}) l
    JOIN audit_rows a ON a.pk = l.audit_pk LEFT JOIN runs r ON r.id = l.run_id`

/** A refusal that names the cause of each changed object, as far as the submitter may know it. */
export async function withCauses(
  reader: EngineReader,
  refusal: Refusal,
  submitter: ActorKeys,
  plannedAt: Date,
): Promise<Refusal> {
  const changed = refusal.objections.flatMap((each) => (each.is === 'changed' ? [each] : [])).slice(0, maxListed)
  const actor = changed.length === 0 ? null : await currentActor(reader, submitter)
  if (actor === null) return refusal
  const last = await lastChanges(
    reader,
    changed.map(({ effect }) => objectIn(effect)),
  )
  const withCause = (each: Objection): Objection => {
    if (each.is !== 'changed') return each
    const found = last.get(changed.indexOf(each))
    return found !== undefined && found.at > plannedAt ? { ...each, by: byWhat(found, actor) } : each
  }
  return new Refusal(refusal.objections.map(withCause), refusal.cause)
}

/** The time since which a plan stands already, and the last line of the log of its apply. */
export async function standsSince(
  reader: EngineReader,
  objects: readonly ObjectName[],
  actor: Actor,
): Promise<{ readonly since: StandsSince; readonly line: string }> {
  const [newest] = [...(await lastChanges(reader, objects)).values()].sort((one, other) => +other.at - +one.at)
  const line = 'nothing is left of the reviewed plan: it stands'
  if (newest === undefined) return { since: { run: null, at: null }, line }
  const run = mayReadRun(newest, actor) ? newest.runId : null
  return { since: { run, at: newest.at.toISOString() }, line: `${line}, applied by ${byWhat(newest, actor)}` }
}

/** `run 0193... of ci, 2026-11-23T10:00:00.000Z` */
function byWhat({ at, runId, submitterPk, options, actorPk, actorName }: Last, actor: Actor): string {
  const user = mayNameUser(actor, actorPk) ? actorName : 'another user'
  const what = runId === null ? 'a request' : mayReadRun({ options, submitterPk }, actor) ? `run ${runId}` : 'a run'
  return `${what} of ${user}, ${at.toISOString()}`
}
