import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { isSuperuser, userText } from '../lists/find.ts'
import { list } from '../lists/list.ts'
import { userTypes } from '../models/user.ts'
import { userView } from '../views/user.ts'

/** GET /api/v3/core/users/ */
export function userRoutes(app: Api, db: Db): void {
  list(app, db, {
    path: '/core/users/',
    summary: 'List users',
    permission: 'view_user',
    view: userView,
    count: 'kept',
    search: userText,
    order: {
      username: 'username',
      name: 'name',
      email: 'email',
      path: 'path',
      type: 'type',
      is_active: 'isActive',
      last_login: 'lastLogin',
      pk: 'pk',
      uuid: 'uuid',
    },
    defaultOrder: 'username',
    filters: {
      attributes: filter.contains('attributes'),
      email: filter.equals('email'),
      groups_by_name: filter.groupsByName,
      groups_by_pk: filter.groupsByPk,
      is_active: filter.isTrue('isActive'),
      is_superuser: filter.holds(isSuperuser),
      name: filter.equals('name'),
      path: filter.equals('path'),
      path_startswith: filter.startsWith('path'),
      type: filter.isOneOf('type', 'user_type', userTypes),
      username: filter.equals('username'),
      uuid: filter.hasUuid('uuid'),
    },
    include: { parameter: 'include_groups' },
  })
}
