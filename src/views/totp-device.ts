import { z } from 'zod'
import type { View } from './view.ts'

/** A TOTP device, without anything of its secret. */
export const totpDeviceView: View = {
  table: 'totp_devices',
  alias: 'd',
  columns: 'd.name, d.pk',
  joins: '',
  schema: z.object({ name: z.string().max(64), pk: z.int() }),
  complete: async (_, rows) => rows,
}
