import { z } from 'zod'
import { withExample } from '../example.ts'
import { defineModel } from './define.ts'
import { integerReferences, jsonObject, listLimits, name, reference, references, textLimits } from './fields.ts'

export default defineModel({
  name: 'service_core.group',
  displayName: 'group',
  table: 'groups',
  key: 'uuid',
  identifiers: [['name']],
  attrs: z.object({
    name: withExample(name(), 'platform'),
    is_superuser: z.boolean().default(false),
    parent: withExample(reference('group', { holds: true }).nullable(), '01a1fd66-1f20-7c11-8a30-5b6f3f2d9a00').default(
      null,
    ),
    users: withExample(integerReferences('user', listLimits.members), [17]).default([]),
    roles: withExample(references('role'), ['01a1fd66-1f20-7c11-8a30-5b6f3f2d9b01']).default([]),
    attributes: withExample(jsonObject(textLimits.attributes), { cost_center: 4711 }).default({}),
  }),
  links: {
    users: { table: 'memberships', own: 'group_pk', other: 'user_pk', many: true },
    roles: { table: 'group_roles', own: 'group_pk', other: 'role_pk' },
  },
  unique: ['name'],
  numbered: ['num_pk'],
  readOnly: ['num_pk', 'parent_name', 'users_obj', 'roles_obj'],
})
