import { z } from 'zod'
import { filledLine, reference, references, secret, text } from '../fields.ts'
import { defineProvider } from '../provider.ts'
import { httpUrl } from '../urls.ts'

export default defineProvider({
  kind: 'scim',
  verboseName: 'SCIM Provider',
  backchannel: 'only',
  flows: 'none',
  elsewhere: { title: 'SCIM', shipped: ['user', 'group'] },
  settings: z.object({
    property_mappings_group: references('propertymapping').default([]),
    url: text(httpUrl),
    // Long enough for a JWT.
    token: secret(filledLine(8_192)),
    verify_certificates: z.boolean().default(true),
    exclude_users_service_account: z.boolean().default(false),
    filter_group: reference('group').nullable().default(null),
  }),
})
