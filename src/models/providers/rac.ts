import { z } from 'zod'
import { secretObject, validity } from '../fields.ts'
import { defineProvider } from '../provider.ts'

export default defineProvider({
  kind: 'rac',
  verboseName: 'RAC Provider',
  settings: z.object({
    // Settings of connections, which may hold credentials such as a password.
    settings: secretObject().default({}),
    connection_expiry: validity('hours=8'),
    delete_token_on_disconnect: z.boolean().default(false),
  }),
})
