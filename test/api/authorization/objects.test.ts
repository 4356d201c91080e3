import { randomUUID } from 'node:crypto'
import { describe, test } from 'vitest'
import { z } from 'zod'
import { type Answer, applyPath, example, installation, kinds, named } from '../../support/kit.ts'
import { type Row, rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

/** Applications, providers and what they refer to, by GET and by HEAD, which gets the same answer without a body. */

/** The name of a provider, by its kind. */
const names = new Map<string, string>()

const lists = [
  'core/applications/',
  'core/groups/:',
  'providers/',
  'consumers/',
  'flows/',
  'propertymappings/',
  'crypto/',
  'rbac/',
].map((path) => `GET /api/v3/${path}`)
const pathOf = ({ operation }: Row) => operation.replace(/^GET /, '')

/** Names that are there, by the path of their list. */
const known = new Map([
  ['core/applications', 'grafana'],
  ['flows/instances', 'default-authentication'],
  ['propertymappings/all', 'OpenID%20scope%20openid'],
  ['crypto/certificatekeypairs', 'Gatewright%20self-signed'],
  ['rbac/roles', 'Application%20deployer'],
  ['rbac/trustedissuers', 'matrix-issuer'],
])

const there = await installation()
const on = stage(there)
for (const kind of kinds) {
  const body = await example(kind)
  names.set(kind, String(body.provider.name))
  await there.admin.put(applyPath, body)
}
const issuer = { issuer: 'https://ci.example.com', audience: 'gatewright' }
await there.admin.apply([
  { model: 'service_rbac.trustedissuer', identifiers: { name: 'matrix-issuer' }, attrs: issuer },
])
known.set('core/groups', (await there.make.group()).pk)

function nameOf({ whose, operation }: Row): string {
  const [, list = ''] = /^GET \/api\/v3\/(.*)\/:\w+\/(?:(?:history|members)\/)?$/.exec(operation) ?? []
  const kind = list.replace('providers/', '')
  const another = kinds.find((each) => each !== kind) ?? ''
  switch (whose) {
    case 'there':
      return known.get(list) ?? names.get(kind) ?? ''
    case 'of another kind':
      return names.get(another) ?? ''
    default:
      return names.get(whose) ?? 'not-there'
  }
}

const page = z.object({ results: z.array(z.object({ meta_model_name: z.string() })) })
const configurations = z.object({ results: z.array(z.object({ client_secret: z.unknown() })) })

/** Whether a consumer gets the secrets. */
function opens({ json }: Answer): string {
  const { results } = configurations.parse(json)
  return results.length === 1 && results[0]?.client_secret !== null ? 'opened' : 'closed'
}

/** Which kinds of provider a list shows. */
function shows({ json }: Answer): string {
  const found = new Set(page.parse(json).results.map(({ meta_model_name }) => meta_model_name))
  const hasLdap = found.has('service_providers_ldap.ldapprovider')
  if (found.size === 1 && hasLdap) return 'ldap'
  if (found.size === kinds.length - 1 && !hasLdap) return 'others'
  return found.size === kinds.length ? 'all' : [...found].join()
}

describe.each(['GET', 'HEAD'])('%s', async (method) => {
  test.each(await rowsOf(...lists))('%s', (_, row) => {
    const path = (name: string) => pathOf(row).replace(/:\w+/, name)
    const says = Object.values(row.cells).some((cell) => cell.includes('200 '))
    return on.try(method === 'HEAD' ? without(row) : row, async () => ({
      method,
      url: path(nameOf(row)),
      missing: path('nothing-at-all'),
      ...(says && { shows: row.member === 'client_secret' ? opens : shows }),
    }))
  })
})

test.each(await rowsOf('DELETE /api/v3/core/applications/'))('who may delete applications: %s', (_, row) =>
  on.try(row, async () => {
    const name = row.whose === 'there' ? await deletable() : 'not-there'
    const query = row.member === 'with_provider' ? '?with_provider=true' : ''
    return { method: 'DELETE', url: `/api/v3/core/applications/${name}/${query}` }
  }),
)

/** A new application with a provider of the kind ldap. */
async function deletable(): Promise<string> {
  const name = `deletable-${randomUUID()}`
  await there.admin.put(applyPath, await named('ldap', name))
  return name
}

/** HEAD has no body that could show objects. */
const without = (row: Row): Row => ({
  ...row,
  cells: Object.fromEntries(
    Object.entries(row.cells).map(([column, cell]) => [column, cell.replace(/(?<=\d) \w+/, '')]),
  ),
})
