import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../http/filters.ts'
import { list } from '../http/list.ts'
import { username } from '../models/syntax.ts'
import { groupView } from '../views/group.ts'

/** GET /api/v3/core/groups/ */

const hasMember = {
  key: 'g.pk',
  pairs: 'memberships m',
  own: 'm.group_pk',
  other: 'm.user_pk',
  table: 'users',
  noun: 'user',
} as const

const usernameParameter = filter.queryText(150).superRefine((sent, context) => {
  const fault = username(sent)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
})

export function groupListRoutes(app: Api, db: Db): void {
  list(app, db, {
    path: '/core/groups/',
    summary: 'List groups',
    permission: 'view_group',
    view: groupView,
    search: ['lower(g.name) LIKE {pattern}'],
    order: {
      name: { sql: 'g.name', unique: true },
      num_pk: { sql: 'g.num_pk', unique: true },
      pk: { sql: 'g.pk', unique: true },
      is_superuser: { sql: 'g.is_superuser' },
    },
    defaultOrder: 'name',
    filters: {
      attributes: filter.contains('g.attributes'),
      is_superuser: filter.isTrue('g.is_superuser'),
      members_by_pk: filter.relatedByKey('integer', hasMember),
      members_by_username: filter.relatedByName('username', hasMember, usernameParameter),
      name: filter.equals('g.name'),
    },
    include: 'include_users',
  })
}
