import * as client from './client/index.ts'

/**
 * `drive URL TOKEN NAME`: applies an application with most fields, then with the required ones alone, without waiting, and a set of
 * two. It lists users and providers.
 */

const [basePath = '', accessToken = '', name = ''] = process.argv.slice(2)
const configuration = new client.Configuration({ basePath, accessToken })
const core = new client.CoreApi(configuration)
const flow = 'default-authorization-explicit'

const submission = (app: client.ApplicationFields, provider: client.Oauth2Provider): client.ApplicationSubmission => ({
  providerModel: 'service_providers_oauth2.oauth2provider',
  app,
  provider,
})
const minimal = (name: string) => submission({ name, slug: name }, { name, authorizationFlow: flow })

/** The logs of a 200. Of a 202, of which `applied` would be undefined, the run. */
async function put(applicationSubmission: client.ApplicationSubmission, prefer?: string): Promise<string[] | string> {
  const sent = { applicationSubmission, ...(prefer !== undefined && { prefer }) }
  const answer = await core.coreTransactionalApplicationsUpdateRaw(sent)
  if (answer.raw.status !== 202) return (await answer.value()).logs
  const accepted: client.Accepted = await answer.raw.json()
  return accepted.run
}

const app: client.ApplicationFields = {
  name,
  slug: name,
  openInNewTab: true,
  metaLaunchUrl: 'https://wiki.example.com/',
  metaDescription: 'Pages of the team',
  metaPublisher: 'Example',
  policyEngineMode: client.PolicyEngineMode.All,
  group: 'Documents',
}
const provider: client.Oauth2Provider = {
  name,
  authenticationFlow: 'default-authentication',
  authorizationFlow: flow,
  invalidationFlow: 'default-provider-invalidation',
  propertyMappings: ['gatewright/oauth2/scope-openid'],
  clientType: client.ClientType.Public,
  accessCodeValidity: 'minutes=5',
  accessTokenValidity: 'hours=2',
  refreshTokenValidity: 'days=14',
  includeClaimsInIdToken: false,
  signingKey: 'Gatewright self-signed',
  redirectUris: [{ matchingMode: client.MatchingMode.Strict, url: 'https://wiki.example.com/in' }],
  subMode: client.SubMode.UserUuid,
  issuerMode: client.IssuerMode.Global,
}

const first = await put(submission(app, provider))
const second = await put(minimal(name))
const accepted = await put(minimal(`${name}-later`), 'respond-async')
const set = await new client.BlueprintsApi(configuration).blueprintsUpdate({
  blueprintOrSubmissions: { submissions: [minimal(`${name}-a`), minimal(`${name}-b`)] },
})
const users = await core.coreUsersList({ groupsByPk: [] })
const listed = await new client.ProvidersApi(configuration).providersAllList({ name, ordering: ['-name', 'pk'] })
const providers = listed.results.map((each) =>
  each.metaModelName === 'service_providers_oauth2.oauth2provider' ? [each.name, each.clientType] : [each.name],
)
console.log(JSON.stringify({ first, second, accepted, set: set.logs, users: users.pagination.count, providers }))
