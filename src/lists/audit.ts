import { z } from 'zod'
import type { Registry } from '../models/registry.ts'
import { auditView } from '../views/audit.ts'
import { auditedObject } from './changed-object.ts'
import * as filter from './filters.ts'
import type { ListSpec } from './listed.ts'
import { auditedUser } from './tables.ts'

/** Audit rows as the API and the pages of operators list them. */
export const auditList = (registry: Registry): ListSpec<'AuditRow'> => ({
  path: '/core/audit/',
  summary: 'List who did what',
  description:
    'Each apply, each write of one object, each act on the queue and each read while impersonating: who, when, which objects and which fields, and never a value of a field. Rows are kept for `AUDIT_DAYS`.',
  permission: 'view_audit',
  view: auditView,
  count: 'capped',
  search: auditedUser,
  order: { at: 'at', id: 'pk' },
  defaultOrder: '-id',
  filters: {
    id: filter.isOneOfKeys('pk', 'bigint'),
    action: filter.equals('action', 'With this action exactly, such as `apply` or `pause_queue`.'),
    change: filter.narrows(
      'changes',
      filter
        .queryText()
        .meta({ description: 'With a change of this action, such as `delete`: those of documents too.' }),
      (changes, action, bind) => `${changes} @> jsonb_build_array(jsonb_build_object('action', ${bind(action)}::text))`,
    ),
    changed: filter.isTrue<never>(
      { sql: `(audit_rows.action <> 'apply' OR audit_rows.changes <> '[]'::jsonb)` },
      'True: without applies that changed nothing. False: only these.',
    ),
    object: auditedObject(registry),
    user: filter.hasKey('actorPk', 'Done by the user with this key.'),
    real_user: filter.hasKey('realPk', 'Done by the user with this key, who impersonated another.'),
    request_id: filter.equals('requestId', 'Done by the request with this `X-Request-Id`.'),
    run: filter.hasUuid('runId', 'Done by the run with this id.'),
    created_after: filter.isSince('at', 'Done at this time or later.'),
    created_before: filter.isBefore('at', 'Done before this time.'),
  },
})

/** The periods of a search, as PostgreSQL writes them. The first is the default. */
export const auditSpans = { day: '1 day', week: '7 days', month: '30 days', all: null } as const
export type AuditSpan = keyof typeof auditSpans

/** The filters of the pages of operators: periods, and a run or a request by one id. */
export const auditOfOperators = (list: ListSpec<'AuditRow'>): ListSpec<'AuditRow'> => ({
  ...list,
  filters: {
    ...list.filters,
    period: filter.isWithin('at', auditSpans),
    id: filter.narrows('requestId', z.string(), (request, id, bind) => {
      const run = z.guid().safeParse(id.toLowerCase()).data
      const ofRun = run === undefined ? '' : ` OR audit_rows.run_id = ${bind(run)}::uuid`
      return `${request} = ${bind(id)}${ofRun}`
    }),
  },
})
