import { type Permission, specialPermissions } from '../../src/permissions.ts'
import { departments } from './words.ts'

type Role = { readonly name: string; readonly permissions: readonly Permission[] }

/** @param all permission names */
export function rolesOf(all: readonly Permission[]): Role[] {
  const special: ReadonlySet<string> = new Set(specialPermissions)
  const ordinary = all.filter((permission) => !special.has(permission))
  const views = ordinary.filter((permission) => permission.startsWith('view_'))
  const deploys = ordinary.filter(
    (permission) => /_(application|\w+provider)$/.test(permission) && !permission.startsWith('delete_'),
  )
  const roles: Role[] = [
    { name: 'Reader', permissions: views },
    { name: 'Auditor', permissions: [...views, 'view_queue'] },
    { name: 'Deployer', permissions: deploys },
    { name: 'Helpdesk', permissions: ['view_user', 'change_user', 'view_group', 'view_totpdevice'] },
    {
      name: 'Group manager',
      permissions: ['view_user', 'view_group', 'add_group', 'change_group', 'add_user_to_group'],
    },
    { name: 'Consent officer', permissions: ['view_userconsent', 'view_application'] },
    { name: 'Role manager', permissions: ['view_role', 'change_role', 'assign_role'] },
    { name: 'Queue watcher', permissions: ['view_queue'] },
  ]
  const staff = departments.map(
    (department): Role => ({
      name: `${department} staff`,
      permissions: ['view_application', 'view_group'],
    }),
  )
  return [...roles, ...staff]
}
