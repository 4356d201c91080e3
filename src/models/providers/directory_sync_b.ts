import { z } from 'zod'
import { deleteAction, filledLine, reference, references, secret } from '../fields.ts'
import { defineProvider } from '../provider.ts'

export default defineProvider({
  kind: 'directory_sync_b',
  verboseName: 'Directory Sync B Provider',
  backchannel: 'only',
  flows: 'none',
  elsewhere: { kind: 'microsoft_entra', title: 'Microsoft Entra', shipped: ['user', 'group'] },
  settings: z.object({
    property_mappings_group: references('propertymapping').default([]),
    client_id: filledLine(255),
    client_secret: secret(filledLine()),
    tenant_id: filledLine(255),
    exclude_users_service_account: z.boolean().default(false),
    filter_group: reference('group').nullable().default(null),
    user_delete_action: deleteAction(),
    group_delete_action: deleteAction(),
  }),
})
