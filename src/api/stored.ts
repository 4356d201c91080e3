import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { listAndOne } from '../lists/one.ts'
import { flowText, issuerText, keyPairName, mappingText, roleName } from '../lists/tables.ts'
import { designations } from '../models/flow.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from '../views/stored.ts'

const [flow, mapping, keyPair, role, issuer] = [
  'service_flows.flow',
  'service_mappings.propertymapping',
  'service_crypto.certificatekeypair',
  'service_rbac.role',
  'service_rbac.trustedissuer',
] as const

const byName = { by: 'name', key: 'uuid' } as const
const named = { count: 'rows', order: { name: 'name', pk: 'pk' }, defaultOrder: 'name' } as const

const anyOf = (model: string) => ({ pk: filter.isOneOfKeys<'pk'>('pk', 'uuid'), stack: filter.isInStack(model) })

/**
 * GET /api/v3/flows/instances/ and .../{slug}/, /api/v3/propertymappings/all/, /api/v3/crypto/certificatekeypairs/,
 * /api/v3/rbac/roles/ and /api/v3/rbac/trustedissuers/, and .../{name}/ of each: in the form in which documents have them. A name
 * that property mappings of several kinds have needs `kind`, as in documents.
 */
export function storedRoutes(app: Api, db: Db, registry: Registry): void {
  listAndOne(app, db, {
    path: '/flows/instances/',
    summary: 'List flows',
    permission: 'view_flow',
    view: storedView(registry, 'Flow', flow, (tx, where) => tx.flow.findMany({ where })),
    count: 'rows',
    search: flowText,
    order: { slug: 'slug', name: 'name', pk: 'pk' },
    defaultOrder: 'slug',
    filters: {
      ...anyOf(flow),
      name: filter.equals('name'),
      slug: filter.unique('slug'),
      designation: filter.isOneOf(
        'designation',
        'flow_designation',
        designations,
        'What the flow is for.',
        'FlowDesignation',
      ),
    },
    one: { by: 'slug', key: 'uuid', displayName: 'flow' },
  })
  listAndOne(app, db, {
    path: '/propertymappings/all/',
    summary: 'List property mappings of all kinds',
    permission: 'view_propertymapping',
    view: storedView(registry, 'PropertyMapping', mapping, (tx, where) => tx.propertyMapping.findMany({ where })),
    count: 'rows',
    search: mappingText,
    order: { name: 'name', kind: 'kind', pk: 'pk' },
    defaultOrder: 'name',
    filters: {
      ...anyOf(mapping),
      name: filter.equals('name'),
      kind: filter.equals('kind', 'Of this kind.'),
      scope_name: filter.equals('scopeName', 'Of this scope.'),
      managed: filter.unique('managed', 'Under this mark of what manages it.'),
    },
    one: { ...byName, displayName: 'property mapping', apartBy: 'kind' },
  })
  listAndOne(app, db, {
    ...named,
    path: '/crypto/certificatekeypairs/',
    summary: 'List certificate key pairs',
    permission: 'view_certificatekeypair',
    view: storedView(registry, 'CertificateKeyPair', keyPair, (tx, where) => tx.certificateKeyPair.findMany({ where })),
    search: keyPairName,
    filters: { ...anyOf(keyPair), name: filter.unique('name') },
    one: { ...byName, displayName: 'certificate key pair' },
  })
  listAndOne(app, db, {
    ...named,
    path: '/rbac/roles/',
    summary: 'List roles',
    permission: 'view_role',
    view: storedView(registry, 'Role', role, (tx, where) => tx.role.findMany({ where })),
    search: roleName,
    filters: { ...anyOf(role), name: filter.unique('name') },
    one: { ...byName, displayName: 'role' },
  })
  listAndOne(app, db, {
    ...named,
    path: '/rbac/trustedissuers/',
    summary: 'List trusted issuers',
    permission: 'view_trustedissuer',
    view: storedView(registry, 'TrustedIssuer', issuer, (tx, where) => tx.trustedIssuer.findMany({ where })),
    search: issuerText,
    filters: {
      ...anyOf(issuer),
      name: filter.unique('name'),
      issuer: filter.equals('issuer', 'With this URL exactly.'),
    },
    one: { ...byName, displayName: 'trusted issuer' },
  })
}
