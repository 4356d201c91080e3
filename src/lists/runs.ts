import type { Values } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { Actor } from '../permissions.ts'
import { longestClaim } from '../pipeline.ts'
import { notAsked, type WhyOf } from '../runs/why.ts'
import { runView } from '../views/run.ts'
import { changedObject } from './changed-object.ts'
import { conditionsOf, ofOwners } from './conditions.ts'
import * as filter from './filters.ts'
import type { ListSpec } from './listed.ts'
import { runTitle } from './tables.ts'

/** The labels of a run, in SQL: its own, and those of entries. */
export const ownersSql = `array_remove(ARRAY[runs.options->>'owner'] || CASE jsonb_typeof(runs.options->'owners') WHEN 'array'
    THEN ARRAY(SELECT jsonb_array_elements_text(runs.options->'owners')) END, NULL)`

/** @property whyOf judges those that have not ended */
export type RunList = ListSpec<'Run'> & { readonly whyOf: WhyOf }

/** Runs as the API and the pages of operators list them. */
export const runList = (registry: Registry, whyOf: WhyOf = notAsked): RunList => ({
  whyOf,
  path: '/blueprints/runs/',
  summary: 'List runs',
  permission: 'authenticated',
  own: { field: 'submitterPk', unless: 'view_run' },
  view: runView(whyOf),
  // The rule is that of `mayReadRun` for one run.
  seen: ofOwners(
    "(runs.options->>'owner')",
    "(runs.options->>'owner' IS NULL AND runs.submitter_pk = {caller})",
    `(runs.options->'owners' IS NULL OR runs.options->'owners' <@ (to_jsonb({owners})
      || CASE WHEN runs.submitter_pk = {caller} THEN '[null]'::jsonb ELSE '[]'::jsonb END))`,
  ),
  count: 'capped',
  search: runTitle,
  order: { created_at: 'createdAt', title: 'title', state: 'state', id: 'id' },
  defaultOrder: '-created_at',
  filters: {
    id: filter.isOneOfKeys('id', 'uuid'),
    state: filter.isOneOf(
      'state',
      'run_state',
      ['queued', 'done', 'failed', 'cancelled'],
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
      (options, label, bind) => {
        const owner = bind(comparedName(label))
        return `${options}->>'owner' = ${owner} OR ${options}->'owners' @> jsonb_build_array(${owner}::text)`
      },
    ),
    stack: filter.narrows(
      'options',
      filter.queryText().meta({ description: 'Of this stack.' }),
      (options, name, bind) => `${options}->>'stack' = ${bind(comparedName(name))}`,
    ),
    repository: filter.narrows(
      'options',
      claim('Submitted by a job of this repository.'),
      (options, name, bind) => `${options} #>> '{pipeline,repository}' = ${bind(name)}`,
    ),
    commit: filter.narrows(
      'options',
      claim('Submitted by a job of the commit that begins so.'),
      (options, start, bind) => `${options} #>> '{pipeline,commit}' LIKE ${bind(`${filter.likeLiterally(start)}%`)}`,
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

const claim = (description: string) => filter.queryText(longestClaim).meta({ description })

/** The runs that a caller sees at all, as a condition in SQL. Further conditions narrow them. */
export const seenRuns = (spec: ListSpec<'Run'>, actor: Actor, { bind }: Pick<Values, 'bind'>): string =>
  ['true', ...conditionsOf(spec, { actor }, bind)].join(' AND ')
