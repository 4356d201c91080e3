import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { list } from '../lists/list.ts'
import { deviceName } from '../lists/tables.ts'
import { totpDeviceView } from '../views/totp-device.ts'

/** GET /api/v3/authenticators/totp/, GET /api/v3/authenticators/admin/totp/ */

const devices = {
  view: totpDeviceView,
  count: 'kept',
  search: deviceName,
  order: { name: 'name', pk: 'pk' },
  defaultOrder: 'name',
  filters: { name: filter.equals('name'), pk: filter.isOneOfKeys('pk', 'integer') },
} as const

export function totpRoutes(app: Api, db: Db): void {
  list(app, db, {
    ...devices,
    path: '/authenticators/totp/',
    summary: "List the caller's own TOTP devices",
    permission: 'authenticated',
    seen: ({ pk }, bind) => `totp_devices.confirmed AND totp_devices.user_pk = ${bind(pk)}`,
  })
  list(app, db, {
    ...devices,
    path: '/authenticators/admin/totp/',
    summary: "List all users' TOTP devices",
    permission: 'view_totpdevice',
  })
}
