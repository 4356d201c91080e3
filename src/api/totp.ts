import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../http/filters.ts'
import { list } from '../http/list.ts'
import { totpDeviceView } from '../views/totp-device.ts'

/** GET /api/v3/authenticators/totp/, GET /api/v3/authenticators/admin/totp/ */

const devices = {
  view: totpDeviceView,
  search: ['lower(d.name) LIKE {pattern}'],
  order: { name: { sql: 'd.name' }, pk: { sql: 'd.pk', unique: true } },
  defaultOrder: 'name',
  filters: { name: filter.equals('d.name') },
} as const

export function totpRoutes(app: Api, db: Db): void {
  list(app, db, {
    ...devices,
    path: '/authenticators/totp/',
    summary: "List the caller's own TOTP devices",
    permission: 'authenticated',
    own: { column: 'd.user_pk' },
    always: 'd.confirmed',
  })
  list(app, db, {
    ...devices,
    path: '/authenticators/admin/totp/',
    summary: "List everybody's TOTP devices",
    permission: 'view_totpdevice',
  })
}
