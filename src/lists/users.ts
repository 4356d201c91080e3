import { userTypes } from '../models/user.ts'
import { userView } from '../views/user.ts'
import * as filter from './filters.ts'
import type { ListSpec } from './listed.ts'
import { isSuperuser, userText } from './tables.ts'

/** Users as the API lists them, and the search of operators finds them. */
export const userList: ListSpec<'User'> = {
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
    stack: filter.isInStack('service_core.user', 'integer'),
    email: filter.equals('email', 'With this e-mail address exactly.'),
    groups_by_name: filter.groupsByName,
    groups_by_pk: filter.groupsByPk,
    is_active: filter.isTrue('isActive', 'Whether the user may log in.'),
    is_superuser: filter.isTrue<never>(isSuperuser, 'Whether the user has all rights, by any group.'),
    name: filter.equals('name'),
    path: filter.equals('path', 'At this path exactly.'),
    path_startswith: filter.startsWith('path', 'At a path that starts with this text.'),
    type: filter.isOneOf('type', 'user_type', userTypes, 'Of this type.', 'UserType'),
    username: filter.unique('username', 'With this user name exactly.'),
    pk: filter.isOneOfKeys('pk', 'integer'),
    uuid: filter.hasUuid('uuid', 'With this UUID.'),
  },
  include: { parameter: 'include_groups', field: 'groups_obj' },
}
