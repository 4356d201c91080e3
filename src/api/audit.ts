import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { list } from '../lists/list.ts'
import { auditedUser } from '../lists/tables.ts'
import { auditView } from '../views/audit.ts'

/** GET /api/v3/core/audit/ */
export function auditRoutes(app: Api, db: Db): void {
  list(app, db, {
    path: '/core/audit/',
    summary: 'List who did what',
    description:
      'Each apply, each write of one object, each act on the queue and each read while impersonating: who, when, which objects and which fields, and never a value. Rows are kept for `AUDIT_DAYS`.',
    permission: 'view_audit',
    view: auditView,
    count: 'capped',
    search: auditedUser,
    order: { at: 'at', id: 'pk' },
    defaultOrder: '-id',
    filters: {
      id: filter.isOneOfKeys('pk', 'bigint'),
      action: filter.equals('action', 'With this action exactly, such as `apply` or `pause_queue`.'),
      user: filter.hasKey('actorPk', 'Done by the user with this key.'),
      real_user: filter.hasKey('realPk', 'Done by the user with this key, who impersonated another.'),
      request_id: filter.equals('requestId', 'Done by the request with this `X-Request-Id`.'),
      run: filter.hasUuid('runId', 'Done by the run with this id.'),
      created_after: filter.isSince('at', 'Done at this time or later.'),
      created_before: filter.isBefore('at', 'Done before this time.'),
    },
  })
}
