import { z } from 'zod'
import { unknownName } from '../messages.ts'
import type { Permission } from '../permissions.ts'
import { defineModel } from './define.ts'
import { filledLine, name } from './fields.ts'

/** @param permissions the closed list of all models' permissions: a role may hold no others */
export const defineRole = (permissions: readonly Permission[]) => {
  const known: ReadonlySet<string> = new Set(permissions)
  const permission = filledLine(100).superRefine((sent, context) => {
    if (!known.has(sent)) context.addIssue({ code: 'custom', message: unknownName('permission', sent, known) })
  })
  return defineModel({
    name: 'service_rbac.role',
    displayName: 'role',
    resource: 'role',
    table: 'roles',
    key: 'uuid',
    identifiers: [['name']],
    attrs: z.object({
      name: name(),
      permissions: z
        .array(permission)
        .max(known.size)
        .refine((sent) => new Set(sent).size === sent.length, 'Must not hold a permission twice.')
        .default([]),
    }),
    unique: ['name'],
    readOnly: ['pk'],
  })
}
