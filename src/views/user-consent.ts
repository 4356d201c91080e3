import { z } from 'zod'
import type { Registry } from '../models/index.ts'
import { application, applicationView, launchUrlFor } from './application.ts'
import { jsonOf } from './json-text.ts'
import { byKey, distinctValues, rowsByKey } from './rows.ts'
import { userView } from './user.ts'
import type { View } from './view.ts'

/** What a user allowed an application to do in his name. */

export const userConsent = z.object({
  pk: z.int(),
  expires: z.iso.datetime().nullable(),
  expiring: z.boolean(),
  user: userView.schema,
  application: application.extend({
    launch_url: z.string().nullable().meta({ description: 'For this user: its placeholders are filled in.' }),
  }),
  permissions: z.string(),
})

export function userConsentView(kinds: Registry['kinds']) {
  const applications = applicationView(kinds)
  return {
    table: 'user_consents',
    alias: 'c',
    columns: 'c.pk, c.expires, c.expiring, c.user_pk AS "user", c.application_pk AS application, c.permissions',
    joins: '',
    schema: userConsent,
    complete: async (q, rows) => {
      if (rows.length === 0) return []
      const [users, apps] = await Promise.all([
        rowsByKey(q, userView, distinctValues(rows, 'user')).then((found) => userView.complete(q, found, true)),
        rowsByKey(q, applications, distinctValues(rows, 'application')).then((found) =>
          applications.complete(q, found),
        ),
      ])
      const [userOf, applicationOf] = [byKey(users), byKey(apps)]
      return rows.map((row) => {
        const user = userOf.get(row.user) ?? {}
        const allowed = applicationOf.get(row.application)
        return {
          ...row,
          user: jsonOf(user),
          application: { ...allowed, launch_url: launchUrlFor(user, allowed?.launch_url) },
        }
      })
    },
  } satisfies View
}
