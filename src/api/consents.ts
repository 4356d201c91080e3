import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../http/filters.ts'
import { list } from '../http/list.ts'
import type { Registry } from '../models/index.ts'
import { userConsentView } from '../views/user-consent.ts'

/** GET /api/v3/core/user_consent/ */
export function consentRoutes(app: Api, db: Db, { kinds }: Registry): void {
  list(app, db, {
    path: '/core/user_consent/',
    summary: 'List user consents',
    permission: 'authenticated',
    own: { column: 'c.user_pk', unless: 'view_userconsent' },
    view: userConsentView(kinds),
    search: ['c.user_pk IN (SELECT u.pk FROM users u WHERE lower(u.username) LIKE {pattern})'],
    order: {
      application: { sql: 'c.application_pk', by: 'its uuid' },
      expires: { sql: 'c.expires' },
      user: { sql: 'c.user_pk', by: 'its pk' },
      pk: { sql: 'c.pk', unique: true },
    },
    defaultOrder: 'application,expires',
    filters: {
      application: filter.hasUuid('c.application_pk'),
      user: filter.hasKey('c.user_pk'),
    },
  })
}
