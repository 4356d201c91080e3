import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { withExample } from '../example.ts'
import { oneOf } from '../models/fields.ts'
import { narrows } from './filters.ts'

/** The state of an application, in one word, with what it says of its last deployment. */

export const states = ['applied', 'failing', 'waiting', 'changed_outside'] as const
export type State = (typeof states)[number]

/** The slugs that queued runs name, in SQL. */
const waiting = `SELECT slug FROM runs WHERE state = 'queued' AND mode = 'apply' AND slug IS NOT NULL
  UNION ALL SELECT jsonb_array_elements_text(options->'applications') FROM runs
    WHERE state = 'queued' AND mode = 'apply' AND jsonb_exists(options, 'applications')`

/** The state of a row of `applications`, in SQL. */
export const stateSql = `CASE WHEN applications.slug IN (${waiting}) THEN 'waiting' ELSE coalesce((
  SELECT CASE WHEN s.failing_since IS NOT NULL THEN 'failing' WHEN s.outside <> '{}' THEN 'changed_outside' END
  FROM application_states s WHERE s.slug = applications.slug), 'applied') END`

const title = 'ApplicationStateWord'
const description = `Whether the last run that names it was applied: \`applied\`; \`waiting\`: a run that names it has not ended;
\`failing\`: the last one was not applied; \`changed_outside\`: fields of it, or of its provider, were changed past the service, as
workers last found. A run names it by its slug, or by the one before a rename. Runs that name its provider or its key alone, that a
user cancelled, or whose document has more than 2 000 entries, do not count`

export const hasState = narrows<never, State>(
  { sql: stateSql },
  oneOf(states, title).meta({ description: `In this state. ${description}.` }),
  (sql, state, bind) => `${sql} = ${bind(state)}`,
)

/** @property failing_run for pages, which ask whether the caller sees it */
const row = z.object({
  slug: z.string(),
  state: z.enum(states),
  failing_since: z.date().nullable(),
  reason: z.string().nullable(),
  failing_run: z.guid().nullable(),
  outside: z.array(z.string()),
})
export type ApplicationState = z.output<typeof row>

type Asked = { readonly slugs?: readonly string[]; readonly keys?: readonly string[] }

/**
 * @param owners only applications of these; null: all
 * @returns the states of those that exist, by slug
 */
export async function readStates(
  db: Db,
  { slugs = [], keys = [] }: Asked,
  owners: readonly string[] | null = null,
): Promise<ReadonlyMap<string, ApplicationState>> {
  if (slugs.length + keys.length === 0) return new Map()
  const text = `SELECT applications.slug, ${stateSql} AS state, s.failing_since, r.reason, s.failing_run, coalesce(s.outside, '{}') AS outside
    FROM applications LEFT JOIN application_states s ON s.slug = applications.slug LEFT JOIN runs r ON r.id = s.failing_run
    WHERE (applications.slug = ANY ($1::text[]) OR applications.pk = ANY ($2::uuid[]))
      AND ($3::text[] IS NULL OR applications.owner = ANY ($3::text[]))`
  const rows = await query(db, row, { text, values: [slugs, keys, owners] })
  return new Map(rows.map((each) => [each.slug, each]))
}

/** The state as the history of an application has it. */
export const applicationState = z
  .object({
    state: z.enum(states).meta({ title, description: `${description}.` }),
    failing_since: z.iso.datetime().nullable().meta({ description: 'Since when runs that name it were not applied.' }),
    failing_reason: withExample(
      z.string().nullable(),
      null,
      'The `reason` of the last of these runs, while it is kept.',
    ),
    changed_outside: withExample(z.array(z.string()), [], 'Fields such as `group` or `provider.sub_mode`.'),
  })
  .meta({ id: 'ApplicationState' })

export const toState = ({
  state,
  failing_since,
  reason,
  outside,
}: ApplicationState): z.output<typeof applicationState> => ({
  state,
  failing_since: failing_since?.toISOString() ?? null,
  failing_reason: reason,
  changed_outside: outside,
})
