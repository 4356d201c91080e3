import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { consentsOfOwners } from '../lists/conditions.ts'
import * as filter from '../lists/filters.ts'
import { list } from '../lists/list.ts'
import { consentUsername } from '../lists/tables.ts'
import type { Registry } from '../models/registry.ts'
import { userConsentView } from '../views/user-consent.ts'

/** GET /api/v3/core/user_consent/ */
export function consentRoutes(app: Api, db: Db, { kinds }: Registry): void {
  list(app, db, {
    path: '/core/user_consent/',
    summary: 'List user consents',
    permission: 'authenticated',
    own: { field: 'userPk', unless: 'view_userconsent' },
    view: userConsentView(kinds),
    seen: consentsOfOwners,
    count: 'kept',
    search: consentUsername,
    searchNeeds: 'view_user',
    order: { application: 'applicationPk', expires: 'expires', user: 'userPk', pk: 'pk' },
    defaultOrder: 'application,expires',
    compared: { application: 'its uuid', user: 'its pk' },
    filters: {
      pk: filter.isOneOfKeys('pk', 'integer'),
      application: filter.hasUuid('applicationPk', 'Of the application with this UUID.'),
      user: filter.hasKey('userPk', 'Of the user with this key.'),
    },
  })
}
