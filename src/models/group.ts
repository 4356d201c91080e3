import { z } from 'zod'
import { defineModel } from './define.ts'
import { integerReferences, jsonObject, listLimits, name, reference, references, textLimits } from './fields.ts'

export default defineModel({
  name: 'service_core.group',
  displayName: 'group',
  resource: 'group',
  table: 'groups',
  key: 'uuid',
  identifiers: [['name']],
  attrs: z.object({
    name: name(),
    is_superuser: z.boolean().default(false),
    parent: reference('group').nullable().default(null),
    users: integerReferences('user', listLimits.members).default([]),
    roles: references('role').default([]),
    attributes: jsonObject(textLimits.attributes).default({}),
  }),
  links: {
    users: { table: 'memberships', own: 'group_pk', other: 'user_pk' },
    roles: { table: 'group_roles', own: 'group_pk', other: 'role_pk' },
  },
  unique: ['name'],
  numbered: ['num_pk'],
  readOnly: ['pk', 'num_pk', 'parent_name', 'users_obj', 'roles_obj'],
})
