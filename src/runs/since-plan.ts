import { z } from 'zod'
import type { Objection } from '../apply/finding.ts'
import { Refusal } from '../apply/refusal.ts'
import { maxListed } from '../apply/words.ts'
import type { EngineReader } from '../db/engine-tx.ts'
import { type Actor, type ActorKeys, mayNameUser } from '../permissions.ts'
import { currentActor } from '../rights/actor.ts'
import { mayReadRun } from './options.ts'

/** Changes of the objects of a plan after its review: by which run, by which user, and when. */

const lastRow = z.object({
  position: z.int(),
  at: z.date(),
  runId: z.guid().nullable(),
  submitterPk: z.int().nullable(),
  options: z.unknown(),
  actorPk: z.int().nullable(),
  actorName: z.string(),
  fields: z.array(z.string()),
})

/** Objects by their keys; without one by their names, which they may have lost. */
const lastText = `SELECT (o.position - 1)::integer AS position, l.at, l.run_id AS "runId", r.submitter_pk AS "submitterPk",
    coalesce(r.options, '{}'::jsonb) AS options, l.actor_pk AS "actorPk", l.actor_name AS "actorName",
    ARRAY(SELECT jsonb_array_elements_text(c->'fields') FROM jsonb_array_elements(l.changes) c
      WHERE c->>'model' = o.model AND (c->>'key' = o.key OR c->'object'->>'name' = o.name)) AS fields
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS o(model, key, name, position), LATERAL (
      SELECT * FROM audit_rows a WHERE a.objects @> ARRAY[coalesce(o.model || ' ' || o.key, o.model || '=' || o.name)]
      ORDER BY a.pk DESC LIMIT 1
    ) l LEFT JOIN runs r ON r.id = l.run_id
  WHERE l.at > $4::timestamptz`

/** A refusal that names the cause of each changed object, as far as the submitter may know it. */
export async function withCauses(
  reader: EngineReader,
  refusal: Refusal,
  submitter: ActorKeys,
  plannedAt: Date,
): Promise<Refusal> {
  const causes = await causesOf(reader, refusal.objections, submitter, plannedAt)
  const withCause = (each: Objection): Objection => {
    const { fields, by } = causes.get(each) ?? {}
    return each.is === 'changed' && by !== undefined ? { ...each, by: `${fields}${by}` } : each
  }
  return new Refusal(refusal.objections.map(withCause), refusal.cause)
}

/** The line of the log about a reviewed plan of which nothing is left. @param changed the entries that it would have changed */
export async function standsLine(
  reader: EngineReader,
  changed: readonly Objection[],
  submitter: ActorKeys,
  plannedAt: Date,
): Promise<string> {
  const [last] = (await causesOf(reader, changed, submitter, plannedAt)).values()
  return `nothing is left of the reviewed plan: it stands${last === undefined ? '' : `, applied by ${last.by}`}`
}

/** @returns for each changed object the last change: `fields` are those that the submitter may know, as `name by ` */
async function causesOf(
  reader: EngineReader,
  objections: readonly Objection[],
  submitter: ActorKeys,
  plannedAt: Date,
): Promise<ReadonlyMap<Objection | undefined, { readonly fields: string; readonly by: string }>> {
  const changed = objections.flatMap((each) => (each.is === 'changed' ? [each] : [])).slice(0, maxListed)
  const actor = changed.length === 0 ? null : await currentActor(reader, submitter)
  if (actor === null) return new Map()
  const effects = changed.map(({ effect }) => effect)
  const last = await reader.query(lastRow, {
    text: lastText,
    values: [
      effects.map(({ step }) => step.model.name),
      effects.map(({ row }) => (row === undefined ? null : String(row.pk))),
      effects.map(({ label }) => label),
      plannedAt,
    ],
  })
  return new Map(
    last.map((row) => {
      const isShown = effects[row.position]?.isHidden !== true && row.fields.length > 0
      return [changed[row.position], { fields: isShown ? `${row.fields.join(', ')} by ` : '', by: byWhat(row, actor) }]
    }),
  )
}

/** `run 0193... of ci, 2026-11-23T10:00:00.000Z` */
function byWhat(
  { at, runId, submitterPk, options, actorPk, actorName }: z.output<typeof lastRow>,
  actor: Actor,
): string {
  const user = mayNameUser(actor, actorPk) ? actorName : 'another user'
  const what = runId === null ? 'a request' : mayReadRun({ options, submitterPk }, actor) ? `run ${runId}` : 'a run'
  return `${what} of ${user}, ${at.toISOString()}`
}
