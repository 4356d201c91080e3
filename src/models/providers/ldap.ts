import { z } from 'zod'
import { int32, line, oneOf, text } from '../fields.ts'
import { defineProvider } from '../provider.ts'
import { keyPair, serving } from '../signing.ts'
import { distinguishedName } from '../syntax.ts'

const mode = () => oneOf(['direct', 'cached'], 'LdapMode').default('direct')

export default defineProvider({
  kind: 'ldap',
  verboseName: 'LDAP Provider',
  backchannel: true,
  // It binds with a flow that authenticates; older files have one that authorizes.
  fits: { authorization_flow: ['authentication', 'authorization'] },
  settings: z.object({
    base_dn: text(distinguishedName).default('DC=ldap,DC=example,DC=com'),
    certificate: keyPair(serving()),
    tls_server_name: line(255).default(''),
    uid_start_number: int32().default(2_000),
    gid_start_number: int32().default(4_000),
    search_mode: mode(),
    bind_mode: mode(),
    mfa_support: z.boolean().default(true),
  }),
})
