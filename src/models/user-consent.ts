import { z } from 'zod'
import { defineModel } from './define.ts'
import { dateTime, integerReference, reference, shownLine } from './fields.ts'

/** The permissions that a user gave an application, to act in the user's name. */
export default defineModel({
  name: 'service_core.userconsent',
  displayName: 'user consent',
  table: 'user_consents',
  key: 'integer',
  identifiers: [
    ['user', 'application'],
    ['user', 'application', 'permissions'],
  ],
  attrs: z.object({
    user: integerReference('user'),
    application: reference('application'),
    permissions: shownLine(500).default(''),
    expires: dateTime().nullable().default(null),
    expiring: z.boolean().default(true),
  }),
  columns: { user: 'user_pk', application: 'application_pk' },
  rules({ expires, expiring }, report) {
    if (expiring === false && typeof expires === 'string')
      report(['expires'], 'invalid_combination', 'A consent that does not expire has no such time: send null.')
  },
})
