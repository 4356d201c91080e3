import { z } from 'zod'
import { defineModel } from './define.ts'
import { follow, jsonObject, oneOf, optionalName, references, shownOnly, text, textLimits, username } from './fields.ts'
import { blankOr, email, path } from './syntax.ts'

export const userTypes = ['external', 'internal', 'internal_service_account', 'service_account'] as const
export type UserType = (typeof userTypes)[number]

export default defineModel({
  name: 'service_core.user',
  displayName: 'user',
  table: 'users',
  key: 'integer',
  identifiers: [['username']],
  attrs: z.object({
    username: username(150),
    name: optionalName().default(''),
    email: text(blankOr(email), 254).default(''),
    is_active: z.boolean().default(true),
    attributes: jsonObject(textLimits.attributes).default({}),
    path: follow(shownOnly, text(path, 255)).default('users'),
    type: oneOf(userTypes, 'UserType').default('internal'),
    groups: references('group').default([]),
  }),
  links: { groups: { table: 'memberships', own: 'user_pk', other: 'group_pk' } },
  unique: ['username'],
  uuid: true,
  readOnly: ['uuid', 'uid', 'avatar', 'last_login', 'is_superuser', 'groups_obj'],
})
