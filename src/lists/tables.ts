import type { Prisma } from '../db/generated/client.ts'
import { columnName, type FieldOf } from '../views/view.ts'
import type { Expression } from './filters.ts'

/** The names of lists in SQL, and the texts that are searched. */

/**
 * The name of a model in SQL. `unique`: fields of which no two rows have the same value; the first is the key. `ties`: fields
 * that come before the key where an order leaves two rows equal.
 */
type Table<Field extends string = string> = {
  readonly name: string
  readonly unique: readonly [Field, ...Field[]]
  readonly ties?: readonly Field[]
  /** Columns that have another name than their field. */
  readonly columns?: { readonly [Of in Field]?: string }
}

/** Models that are listed. `checkList` compares them with the database at start. */
const tables = {
  User: { name: 'users', unique: ['pk', 'uuid', 'username'] },
  Group: { name: 'groups', unique: ['pk', 'name'] },
  TotpDevice: { name: 'totp_devices', unique: ['pk'] },
  UserConsent: { name: 'user_consents', unique: ['pk'], ties: ['expires'] },
  Run: { name: 'runs', unique: ['id'], ties: ['createdAt'] },
  Token: { name: 'tokens', unique: ['pk', 'identifier'] },
  Application: { name: 'applications', unique: ['pk', 'slug'], columns: { group: 'group_name' } },
  Provider: { name: 'providers', unique: ['pk', 'uuid', 'name'] },
  Flow: { name: 'flows', unique: ['pk', 'slug'] },
  PropertyMapping: { name: 'property_mappings', unique: ['pk'] },
  CertificateKeyPair: { name: 'certificate_key_pairs', unique: ['pk', 'name'] },
  Role: { name: 'roles', unique: ['pk', 'name'] },
  TrustedIssuer: { name: 'trusted_issuers', unique: ['pk', 'name'] },
  Stack: { name: 'stacks', unique: ['name'] },
  AuditRow: { name: 'audit_rows', unique: ['pk'] },
} satisfies { [Model in Prisma.ModelName]?: Table<FieldOf<Model>> }

export type ListedModel = keyof typeof tables

export const tableOf = (model: ListedModel): Table => tables[model]

/** The column of a field, as `schema.prisma` maps it: `isActive` -> `is_active`. */
export const columnOf = (model: ListedModel, field: string): string =>
  tableOf(model).columns?.[field] ?? columnName(field)

export const qualified = (model: ListedModel, field: string): string =>
  `${tableOf(model).name}.${columnOf(model, field)}`

/** Texts that are searched; the lower case of each is LIKE `{pattern}`. That of users alone has a trigram index. */
export const userText = `lower(users.username || ' ' || users.name || ' ' || users.email || ' ' || users.uuid::text)
  LIKE {pattern}`
export const groupName = 'lower(groups.name) LIKE {pattern}'
export const deviceName = 'lower(totp_devices.name) LIKE {pattern}'
export const consentUsername =
  'user_consents.user_pk IN (SELECT u.pk FROM users u WHERE lower(u.username) LIKE {pattern})'
export const tokenText = `lower(tokens.identifier || ' ' || tokens.description) LIKE {pattern}`
export const applicationText = `lower(applications.name || ' ' || applications.slug || ' ' || applications.group_name)
  LIKE {pattern}`
export const providerName = 'lower(providers.name) LIKE {pattern}'
export const flowText = `lower(flows.name || ' ' || flows.slug || ' ' || flows.title) LIKE {pattern}`
export const mappingText = `lower(property_mappings.name || ' ' || coalesce(property_mappings.managed, '')) LIKE {pattern}`
export const keyPairName = 'lower(certificate_key_pairs.name) LIKE {pattern}'
export const roleName = 'lower(roles.name) LIKE {pattern}'
export const issuerText = `lower(trusted_issuers.name || ' ' || trusted_issuers.issuer) LIKE {pattern}`
export const auditedUser = `lower(audit_rows.actor_name || ' ' || coalesce(audit_rows.real_name, '')) LIKE {pattern}`
export const stackName = 'lower(stacks.name) LIKE {pattern}'
export const runTitle = 'lower(runs.title) LIKE {pattern}'

/**
 * Whether a user is a superuser, by a group or one above it. The groups that make superusers are few: they are found once for a
 * statement, and looked up among the groups of each user.
 */
export const isSuperuser: Expression = {
  sql: `EXISTS (SELECT FROM memberships m WHERE m.user_pk = users.pk AND m.group_pk = ANY (ARRAY(
    SELECT ga.group_pk FROM groups sg JOIN group_ancestors ga ON ga.ancestor_pk = sg.pk WHERE sg.is_superuser)))`,
}
