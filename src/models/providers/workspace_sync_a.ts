import { z } from 'zod'
import { deleteAction, filledLine, reference, references, secretObject, text, unordered } from '../fields.ts'
import { defineProvider } from '../provider.ts'
import { domain, email } from '../syntax.ts'

const scopes = ['user', 'group', 'group.member', 'domain.readonly'].map(
  (scope) => `https://www.googleapis.com/auth/admin.directory.${scope}`,
)

export default defineProvider({
  kind: 'workspace_sync_a',
  verboseName: 'Workspace Sync A Provider',
  backchannel: 'only',
  flows: 'none',
  elsewhere: { kind: 'google_workspace', title: 'Google Workspace', shipped: ['user', 'group'] },
  settings: z.object({
    property_mappings_group: references('propertymapping').default([]),
    delegated_subject: text(email, 254),
    credentials: secretObject(),
    scopes: unordered(filledLine()).default(scopes.join(',')),
    exclude_users_service_account: z.boolean().default(false),
    filter_group: reference('group').nullable().default(null),
    user_delete_action: deleteAction(),
    group_delete_action: deleteAction(),
    default_group_email_domain: text(domain, 255),
  }),
})
