import { z } from 'zod'
import { tokenIntents } from '../token-secret.ts'
import { jsonOf } from './json-text.ts'
import { byKey, rowsByKey } from './rows.ts'
import { userView } from './user.ts'
import type { Row, View } from './view.ts'

/** A token, without its secret. */

const schema = z.object({
  pk: z.guid(),
  managed: z.string().nullable(),
  identifier: z.string().max(255),
  intent: z.enum(tokenIntents),
  user: z.int(),
  user_obj: userView.schema,
  description: z.string(),
  expires: z.iso.datetime().nullable(),
  expiring: z.boolean(),
})

export const tokenView = {
  table: 'tokens',
  alias: 't',
  columns: 't.pk, t.managed, t.identifier, t.intent, t.user_pk AS "user", t.description, t.expires, t.expiring',
  joins: '',
  schema,
  complete: async (q, rows: readonly Row[]) => {
    const owners = await rowsByKey(q, userView, [...new Set(rows.map((row) => Number(row.user)))])
    const users = byKey(await userView.complete(q, owners, true))
    return rows.map((row) => ({ ...row, user_obj: jsonOf(users.get(row.user) ?? {}) }))
  },
} satisfies View
