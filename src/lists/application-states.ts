import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query, Values } from '../db/raw.ts'
import { withExample } from '../example.ts'
import { oneOf } from '../models/fields.ts'
import { type Actor, allows, ownersShown } from '../permissions.ts'
import { deletedMark, erasedSql, fieldsOutside, isOutside, type Standing } from '../runs/outside.ts'
import { logNotShown, runsWithHiddenLogs } from '../views/former-owner.ts'
import { narrows } from './filters.ts'
import type { ListSpec } from './listed.ts'
import { seenRuns } from './runs.ts'

/** The state of an application, in one word, with what it says of its last deployment. */

export const states = ['applied', 'failing', 'waiting', 'changed_outside'] as const
export type State = (typeof states)[number]

/** The slugs that queued runs name, in SQL. */
const waiting = `SELECT slug FROM runs WHERE state = 'queued' AND mode = 'apply' AND slug IS NOT NULL
  UNION ALL SELECT jsonb_array_elements_text(options->'applications') FROM runs
    WHERE state = 'queued' AND mode = 'apply' AND jsonb_exists(options, 'applications')`

/** The state of a row of `applications`, in SQL. */
export const stateSql = `CASE WHEN applications.slug IN (${waiting}) THEN 'waiting' ELSE coalesce((
  SELECT CASE WHEN s.failing_since IS NOT NULL THEN 'failing' WHEN s.outside NOT IN ('{}', ${deletedMark}) THEN 'changed_outside' END
  FROM application_states s WHERE s.slug = applications.slug), 'applied') END`

const title = 'ApplicationStateWord'
const description = `Whether the last run that names it was applied: \`applied\`; \`waiting\`: a run that names it has not ended;
\`failing\`: the last one was not applied; \`changed_outside\`: fields of it, or of its provider, were changed past the service, as
workers last found; a history compares them at once. A run names it by its slug, or by the one before a rename. Runs that name its
provider or its key alone, that a user cancelled, or whose document has more than 2 000 entries, do not count`

export const hasState = narrows<never, State>(
  { sql: stateSql },
  oneOf(states, title).meta({ description: `In this state. ${description}.` }),
  (sql, state, bind) => `${sql} = ${bind(state)}`,
)

const row = z.object({
  pk: z.guid(),
  slug: z.string(),
  state: z.enum(states),
  failing_since: z.date().nullable(),
  failing_run: z.guid().nullable(),
  reason: z.string().nullable(),
  cause: z.string().nullable(),
  sentence: z.string().nullable(),
  outside: z.array(z.string()),
})

/**
 * @property failing_run null when it is no longer kept, or when the caller does not see it
 * @property reason why that run was not applied, as far as the caller may know it
 */
export type ApplicationState = Omit<z.output<typeof row>, 'cause' | 'sentence'>

type WhichApplications = { readonly slugs?: readonly string[]; readonly keys?: readonly string[] }

/** @param owners only applications of these; null: all @returns the states of those that exist, by slug */
export async function readStates(
  db: Db,
  runs: ListSpec<'Run'>,
  actor: Actor,
  { slugs = [], keys = [] }: WhichApplications,
  owners: readonly string[] | null = null,
): Promise<ReadonlyMap<string, ApplicationState>> {
  if (slugs.length + keys.length === 0) return new Map()
  const values = new Values()
  const among = values.bind(owners)
  const text = `SELECT applications.pk, applications.slug, ${stateSql} AS state, s.failing_since, coalesce(s.outside, '{}') AS outside,
      CASE WHEN ${seenRuns(runs, actor, values)} THEN runs.id END AS failing_run, runs.reason, runs.cause,
      left(regexp_replace(runs.logs[1], '^not applied: ', ''), 300) AS sentence
    FROM applications LEFT JOIN application_states s ON s.slug = applications.slug LEFT JOIN runs ON runs.id = s.failing_run
    WHERE (applications.slug = ANY (${values.bind(slugs)}::text[]) OR applications.pk = ANY (${values.bind(keys)}::uuid[]))
      AND (${among}::text[] IS NULL OR applications.owner = ANY (${among}::text[]))`
  const rows = await query(db, row, { text, values: values.list })
  const failing = rows.flatMap(({ failing_run: run }) => run ?? [])
  const hidden = await runsWithHiddenLogs(db, failing, actor)
  const seesCause = allows(actor, 'view_run')
  return new Map(
    rows.map(({ cause, sentence, ...each }) => {
      const { slug, failing_run: run } = each
      const why = run === null ? null : ((seesCause ? cause : null) ?? (hidden.has(run) ? logNotShown : sentence))
      return [slug, { ...each, reason: why ?? each.reason }]
    }),
  )
}

/** The state with the fields that were compared just now: workers may not have compared them yet. */
export function compared(of: ApplicationState, standing: readonly Standing[]): ApplicationState {
  if (isOutside(standing) === null) return of
  const outside = fieldsOutside(standing)
  const isUrgent = of.state === 'waiting' || of.state === 'failing'
  return { ...of, outside, state: isUrgent ? of.state : outside.length > 0 ? 'changed_outside' : 'applied' }
}

const mostErased = 50

/**
 * @param owner only those of this one; null: all @param terms parts of the slug
 * @returns the slugs of applications that were deleted past the service, as workers last found
 */
export async function readErased(db: Db, actor: Actor, owner: string | null, terms: readonly string[]) {
  const text = `SELECT slug FROM ${erasedSql} e WHERE ($1::text IS NULL OR owner = $1) AND ($2::text[] IS NULL OR owner = ANY ($2::text[]))
    AND NOT EXISTS (SELECT FROM unnest($3::text[]) term WHERE strpos(lower(slug), lower(term)) = 0) ORDER BY slug LIMIT ${mostErased}`
  const rows = await query(db, row.pick({ slug: true }), { text, values: [owner, ownersShown(actor), terms] })
  return rows.map(({ slug }) => slug)
}

/** @returns the oldest run that an application waits for */
export async function readWaitingRun(db: Db, slug: string): Promise<string | undefined> {
  const [found] = await query(db, z.object({ id: z.guid() }), {
    text: `SELECT id FROM runs WHERE state = 'queued' AND mode = 'apply'
      AND (slug = $1 OR jsonb_exists(options->'applications', $1)) ORDER BY created_at LIMIT 1`,
    values: [slug],
  })
  return found?.id
}

/** The state as the history of an application has it. */
export const applicationState = z
  .object({
    state: z.enum(states).meta({ title, description: `${description}.` }),
    failing_since: z.iso.datetime().nullable().meta({ description: 'Since when runs that name it were not applied.' }),
    failing_reason: withExample(
      z.string().nullable(),
      null,
      'Why the last of these runs was not applied, while it is kept: its `cause`, or the first line of its log. Its `reason` for callers who do not see the run.',
    ),
    changed_outside: withExample(z.array(z.string()), [], 'Fields such as `group` or `provider.sub_mode`.'),
  })
  .meta({ id: 'ApplicationState' })

export const toState = (of: ApplicationState): z.output<typeof applicationState> => ({
  state: of.state,
  failing_since: of.failing_since?.toISOString() ?? null,
  failing_reason: of.reason,
  changed_outside: of.outside,
})
