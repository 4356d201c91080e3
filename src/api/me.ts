import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { permissionNames, type Registry } from '../models/registry.ts'
import { me, readMe } from '../views/me.ts'

/** GET /api/v3/core/users/me/: the caller's own user. */
export function meRoutes(app: Api, db: Db, registry: Registry): void {
  const all = permissionNames(registry)
  app.get(
    '/core/users/me/',
    { config: { permission: 'authenticated' }, schema: { summary: 'Read the current user', response: { 200: me } } },
    async ({ actor }) => readMe(db, actor, all),
  )
}
