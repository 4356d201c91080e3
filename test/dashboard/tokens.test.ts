import { describe, expect, test, vi } from 'vitest'
import {
  applied,
  type Claims,
  dashboardOf,
  githubClaims,
  gitlabClaims,
  installation,
  type Made,
  startIssuer,
  until,
} from '../support/kit.ts'

/** /admin/tokens/, and what /admin/refusals/ says of jobs. */

const issuer = await startIssuer()
const there = await installation({ privateIssuers: [issuer.url] })
const dashboard = dashboardOf(there)
const audience = 'https://iam.example.com'
const gitHub = 'https://token.actions.githubusercontent.com'

const deployer = await there.make.user({ permissions: [] })
const operator = await there.make.user({
  permissions: ['view_queue', 'view_run', 'view_token', 'view_user', 'view_trustedissuer'],
})

async function show(as: Made, url = '/admin/tokens/'): Promise<string> {
  const { statusCode, body } = await dashboard.get(as, url)
  expect([url, statusCode]).toEqual([url, 200])
  return body
}

const main = { name: 'main', claims: { repository: 'acme/shop', ref: 'refs/heads/main' }, user: deployer.username }

async function trust(name: string, attrs: object): Promise<void> {
  const entry = { model: 'service_rbac.trustedissuer', identifiers: { name }, attrs: { audience, ...attrs } }
  await applied(there.admin.apply([entry]))
}

async function exchange(claims: Claims): Promise<number> {
  const { statusCode } = await there.app.inject({
    ...{ method: 'POST', url: '/api/v3/auth/token/' },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: await issuer.sign({ aud: audience, ...claims }),
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    }).toString(),
  })
  return statusCode
}

describe('stored tokens', async () => {
  const days = (count: number) => new Date(Date.now() + count * 86_400_000)
  for (const [identifier, left] of [
    ['next', 3],
    ['yesterday', -1],
    ['far-away', 15],
  ] as const)
    await there.make.token(deployer.pk, { identifier, expires: days(left) })
  await there.db.token.update({ where: { identifier: 'next' }, data: { description: 'of <b>next</b>' } })

  test('that expired lately or expire soon stand there with user and description, the others as a number', async () => {
    const page = await show(operator)
    const names = [...page.matchAll(/<th scope="row" class="name" title="(yesterday|next|far-away)">/g)].map(
      ([, name]) => name,
    )
    expect(names).toEqual(['yesterday', 'next'])
    expect(page).toMatch(
      new RegExp(`title="next">next</th>.*?>${deployer.username}<.*?>of &lt;b&gt;next&lt;/b&gt;</td>`, 's'),
    )
    const all = await there.db.token.count({ where: { intent: 'api' } })
    expect(page).toContain(`Others that expire later, or never: ${all - 2}.`)
    expect(await show(operator, '/admin/')).toContain('<a href="/admin/tokens/">Tokens</a>')
  })

  test('of others need view_token', async () => {
    const other = await there.make.user({ permissions: ['view_queue'] })
    const page = await show(other)
    expect(page).not.toContain('title="next"')
    for (const permission of ['view_token', 'view_trustedissuer'])
      expect(page).toContain(`ou lack the permission ${permission}.`)
    expect(page).toContain('Others that expire later, or never: 1.')
  })
})

describe('jobs', () => {
  test('an installation without a trusted issuer says what one is for', async () => {
    const page = await show(operator)
    expect(page).toContain('There is none. With one, the jobs of a CI system need no stored token')
  })

  test('issuers stand there with their rules, doubts, and users who are not there', async () => {
    const rules = [
      { ...main, name: 'z', owners: ['team-a'], stacks: ['team-a/apps'] },
      { name: 'b', claims: { repository: 'acme/<i>', event_name: '*/x' }, user: 'gone' },
      { name: 'a', claims: { repository: 'acme/shop' }, user: deployer.username },
    ]
    await trust('ruled', { issuer: gitHub, jwks: await issuer.jwks(), rules })
    const page = await show(operator)
    const [section = ''] = /<h3>(?:(?!<h3>).)*ruled.*?<\/table>/s.exec(page) ?? []
    expect(section).toContain(gitHub)
    expect(section).toContain(audience)
    expect(section).toContain('the keys in its jwks')
    expect([...section.matchAll(/<th scope="row"[^>]*>([^<]+)</g)].map(([, name]) => name)).toEqual(['a', 'b', 'z'])
    expect(section).toContain('</span> Rule &quot;a&quot; takes jobs of pull requests, too')
    expect(section).toContain('repository: acme/&lt;i&gt;')
    expect(section).toMatch(/>gone<.*?>no active user</s)
    expect(section).toMatch(/>any<.*>team-a<.*>team-a\/apps</s)
    const other = await there.make.user({ permissions: ['view_queue', 'view_trustedissuer'] })
    expect(await show(other)).not.toContain('no active user')
    await there.db.trustedIssuer.deleteMany()
  })

  test('their tokens stand there with their jobs until the rule is another', async () => {
    await trust('github', { issuer: gitHub, jwks: await issuer.jwks(), rules: [main] })
    await trust('gitlab', {
      issuer: issuer.url,
      rules: [{ ...main, claims: { project_path: 'acme/shop', ref: '*/y' } }],
    })
    expect(await exchange(githubClaims({ iss: gitHub }))).toBe(200)
    expect(await exchange(gitlabClaims({ ref: '"><img src=x onerror=alert(1)>/y' }))).toBe(200)
    const page = await show(operator)
    expect(page).toContain('keys that are fetched')
    const [, jobs = ''] = page.split('Access tokens of jobs that are valid now')
    const rows = jobs.match(/<tr><th scope="row".*?<\/tr>/gs) ?? []
    expect(rows).toHaveLength(2)
    const [second = '', first = ''] = rows
    for (const text of [deployer.username, 'github: main', '<summary>acme/shop 1f494652</summary>', 'refs/heads/main'])
      expect(first).toContain(text)
    expect(first).toContain('<a href="https://github.com/acme/shop/actions/runs/1234567890">https://github.com/')
    expect(second).toContain('&quot;&gt;&lt;img src=x')
    // This issuer has no HTTPS.
    expect(second).not.toContain('href="http')
    expect(page).not.toContain('<img')

    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 16 * 60_000 })
    const fast = await show(operator).finally(() => vi.useRealTimers())
    expect(fast, 'with a clock that is ahead of the database').toContain('github: main')

    const reader = await there.make.user({ permissions: ['view_queue', 'view_trustedissuer'] })
    expect((await show(reader)).split('Access tokens of jobs that are valid now')[1]).toContain('There is none.')

    await trust('github', { rules: [{ ...main, claims: { repository: 'acme/shop', ref: 'refs/heads/next' } }] })
    const after = await show(operator)
    expect(after).not.toContain('github: main')
    expect(after).toContain('gitlab: main')
  })

  test('those that were refused say why on the page of refusals', async () => {
    await there.db.trustedIssuer.deleteMany()
    await trust('refuses', { issuer: issuer.url, rules: [main] })
    expect(await exchange(githubClaims({ sub: 'repo:acme/<b>', ref: 'refs/heads/other' }))).toBe(401)
    await until('the refusal', async () => (await there.db.refusal.count()) > 0)
    const page = await show(operator, '/admin/refusals/?kind=access')
    expect(page).toContain('No rule of trusted issuer &quot;refuses&quot; fits &quot;repo:acme/&lt;b&gt;&quot;')
    expect(page).toContain('identity tokens of jobs that got no access token')
    expect(page).toContain('POST /api/v3/auth/token/')
  })
})
