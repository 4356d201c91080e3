import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../http/filters.ts'
import { list } from '../http/list.ts'
import { userTypes } from '../models/user.ts'
import { isSuperuser, userView } from '../views/user.ts'

/** GET /api/v3/core/users/ */

const memberOf = {
  key: 'u.pk',
  pairs: 'memberships m',
  own: 'm.user_pk',
  other: 'm.group_pk',
  table: 'groups',
  noun: 'group',
} as const

export function userRoutes(app: Api, db: Db): void {
  list(app, db, {
    path: '/core/users/',
    summary: 'List users',
    permission: 'view_user',
    view: userView,
    search: [`lower(u.username || ' ' || u.name || ' ' || u.email || ' ' || u.uuid::text) LIKE {pattern}`],
    order: {
      username: { sql: 'u.username', unique: true },
      name: { sql: 'u.name' },
      email: { sql: 'u.email' },
      path: { sql: 'u.path' },
      type: { sql: 'u.type' },
      is_active: { sql: 'u.is_active' },
      last_login: { sql: 'u.last_login' },
      pk: { sql: 'u.pk', unique: true },
      uuid: { sql: 'u.uuid', unique: true },
    },
    defaultOrder: 'username',
    filters: {
      attributes: filter.contains('u.attributes'),
      email: filter.equals('u.email'),
      groups_by_name: filter.relatedByName('name', memberOf),
      groups_by_pk: filter.relatedByKey('uuid', memberOf),
      is_active: filter.isTrue('u.is_active'),
      is_superuser: filter.isTrue(isSuperuser),
      name: filter.equals('u.name'),
      path: filter.equals('u.path'),
      path_startswith: filter.startsWith('u.path'),
      type: filter.isOneOf('u.type', 'user_type', userTypes),
      username: filter.equals('u.username'),
      uuid: filter.hasUuid('u.uuid'),
    },
    include: 'include_groups',
  })
}
