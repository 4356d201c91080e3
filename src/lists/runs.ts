import type { z } from 'zod'
import { type Db, transaction } from '../db/client.ts'
import { query, type Statement, unprepared, type Values } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { Actor } from '../permissions.ts'
import { runView } from '../views/run.ts'
import { changedObject } from './changed-object.ts'
import { conditionsOf } from './conditions.ts'
import * as filter from './filters.ts'
import { type ListSpec, scopeOf } from './list.ts'
import { runTitle } from './tables.ts'

/** Whether a run has an owner, in SQL. @param owner a placeholder */
export const hasOwner = (options: string, owner: string): string =>
  `(${options}->>'owner' = ${owner} OR ${options}->'owners' @> jsonb_build_array(${owner}::text))`

/** The labels of a run, in SQL: its own, and those of entries. */
export const ownersSql = `array_remove(ARRAY[runs.options->>'owner'] || CASE jsonb_typeof(runs.options->'owners') WHEN 'array'
    THEN ARRAY(SELECT jsonb_array_elements_text(runs.options->'owners')) END, NULL)`

const states = ['queued', 'done', 'failed', 'cancelled'] as const

/** Runs as the API and the pages of operators list them. */
export const runList = (registry: Registry): ListSpec<'Run'> => ({
  path: '/blueprints/runs/',
  summary: 'List runs',
  permission: 'authenticated',
  own: { field: 'submitterPk', unless: 'view_run' },
  view: runView,
  // The rule is that of `mayReadRun` for one run.
  owned: {
    unless: 'view_application',
    sql: "(runs.options->>'owner')",
    or: "(runs.options->>'owner' IS NULL AND runs.submitter_pk = {caller})",
    and: `(runs.options->'owners' IS NULL OR runs.options->'owners' <@ (to_jsonb({owners})
      || CASE WHEN runs.submitter_pk = {caller} THEN '[null]'::jsonb ELSE '[]'::jsonb END))`,
  },
  count: 'capped',
  search: runTitle,
  order: { created_at: 'createdAt', title: 'title', state: 'state', id: 'id' },
  defaultOrder: '-created_at',
  filters: {
    id: filter.isOneOfKeys('id', 'uuid'),
    state: filter.isOneOf(
      'state',
      'run_state',
      states,
      'In this stored state: a run that is `running` is a `queued` one that a worker has locked.',
      'State',
    ),
    mode: filter.isOneOf('mode', 'run_mode', ['apply', 'plan'], 'Applied, or only planned.', 'RunMode'),
    reason: filter.equals('reason', 'Ended for this reason.'),
    kind: filter.equals('kind', 'Of this kind.'),
    slug: filter.equals('slug'),
    object: changedObject(registry),
    owner: filter.narrows(
      'options',
      filter.queryText().meta({ description: 'Submitted under this owner, or with entries under it.' }),
      (options, owner, bind) => hasOwner(options, bind(comparedName(owner))),
    ),
    submitter: filter.hasKey('submitterPk', 'Submitted by the user with this key.'),
    request_id: filter.equals(
      'requestId',
      'Submitted by requests with this `X-Request-Id`, which any caller may send: a job has a `submitter`, too.',
    ),
    created_after: filter.isSince('createdAt', 'Made at this time or later.'),
    created_before: filter.isBefore('createdAt', 'Made before this time.'),
  },
})

/** The runs that a caller sees at all, as a condition in SQL. Further conditions narrow them. */
export const seenRuns = (spec: ListSpec<'Run'>, actor: Actor, { bind }: Values): string =>
  ['true', ...conditionsOf(spec, { filters: [], terms: [], ...scopeOf(spec, actor) }, bind)].join(' AND ')

/** Reads runs. The statement is planned for its values: one submitter may have most runs, and another none. */
export const askRuns = <Row>(db: Db, row: z.ZodType<Row>, statement: Statement): Promise<Row[]> =>
  transaction(db, (tx) => query(tx, row, unprepared(statement)), { plans: 'auto' })
