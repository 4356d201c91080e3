import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keyring } from '../../src/db/seal.ts'
import { plausibleTokens } from '../../src/http/plausible.ts'
import {
  type Asker,
  answered,
  applied,
  type Claims,
  githubClaims,
  installation,
  rows,
  sql,
  startIssuer,
} from '../support/kit.ts'
import { exchangePath, exchangeStand, type Rule, ruleFor } from './exchange-stand.ts'

/** Jobs exchange their identity tokens for access tokens, by the rules of trusted issuers. */

const issuer = await startIssuer()
const on = await installation({ privateIssuers: [issuer.url] })
const { db } = on
const { trust, post, fieldsOf, sign, exchange, job } = exchangeStand(on, issuer)

const member = await on.make.user({ permissions: ['view_application', 'add_application', 'change_application'] })
const main = ruleFor(member.username)

test('a job gets the rights of the user of its rule for 15 minutes, and no token is in clear', async () => {
  const name = await trust([main])
  const answer = await exchange()
  expect(answer.status).toBe(200)
  expect(answer.json).toEqual({
    access_token: expect.stringMatching(/^gw_a_/),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: 900,
  })
  expect(answer.headers['cache-control']).toContain('no-store')
  const asJob = on.as(answer.accessToken)
  await answered(200, asJob.get('/api/v3/core/users/me/'))
  const { json } = await answered(200, asJob.get(exchangePath))
  expect(json).toEqual({
    identifier: null,
    user: member.username,
    expires: expect.any(String),
    bound_to: { owners: [], stacks: [] },
    pipeline: {
      issuer: name,
      rule: 'main',
      subject: 'repo:acme/shop:ref:refs/heads/main',
      repository: 'acme/shop',
      ref: 'refs/heads/main',
      commit: githubClaims().sha,
      job: '1234567890',
      job_url: `${issuer.url}/acme/shop/actions/runs/1234567890`,
      actor: 'ann',
    },
  })
  const [row] = await rows(db, sql`SELECT row_to_json(t)::text AS text FROM exchanged_tokens t`)
  expect(JSON.stringify(row)).not.toContain(answer.accessToken)
})

test('a rule without event_name takes pull_request_target, which runs with the ref of the main branch; one with it does not', async () => {
  const event = { event_name: 'pull_request_target', base_ref: 'main', head_ref: 'fork', actor: 'mallory' }
  await trust([main])
  await answered(200, exchange(event))
  await trust([{ ...main, claims: { ...main.claims, event_name: 'push' } }])
  await answered(401, exchange(event))
  await answered(200, exchange())
})

describe('what a run keeps of its job', () => {
  /** The claims of a token of another issuer, as the rules see them. */
  async function pipelineOf(iss: string, claims: Claims): Promise<Record<string, unknown>> {
    const rule = { name: 'r', claims: { sub: 's' }, user: member.username }
    await trust([rule], { issuer: iss, jwks: await issuer.jwks() })
    const alone = Object.fromEntries(Object.keys(githubClaims()).map((name) => [name, null]))
    const { status, accessToken } = await post(fieldsOf(await sign({ ...alone, iss, sub: 's', ...claims })))
    expect(status).toBe(200)
    const answer = await answered(200, on.as(accessToken).get(exchangePath))
    return Object(Object(answer.json).pipeline)
  }
  const gitlab = { project_path: 'acme/apps/shop', job_id: '5' }
  const github = { repository: 'acme/shop', run_id: '7', job_id: undefined }

  test.each<[string, Claims, string | null]>([
    ['https://token.actions.githubusercontent.com', github, 'https://github.com/acme/shop/actions/runs/7'],
    ['https://token.actions.githubusercontent.com/acme', github, 'https://github.com/acme/shop/actions/runs/7'],
    ['https://token.actions.acme.ghe.com', github, 'https://acme.ghe.com/acme/shop/actions/runs/7'],
    ['https://github.acme.example/_services/token', github, 'https://github.acme.example/acme/shop/actions/runs/7'],
    ['https://gitlab.com', gitlab, 'https://gitlab.com/acme/apps/shop/-/jobs/5'],
    ['https://gitlab.com/', gitlab, 'https://gitlab.com/acme/apps/shop/-/jobs/5'],
    ['https://acme.example/gitlab', gitlab, 'https://acme.example/gitlab/acme/apps/shop/-/jobs/5'],
    ['https://ci.example', { job_id: '5' }, null],
    ['https://ci.example', { repository: 'acme/shop' }, null],
  ])('the page of the job: %s, %j', async (iss, claims, url) => {
    expect((await pipelineOf(iss, claims)).job_url).toBe(url)
  })

  test('CircleCI: the claims of its names', async () => {
    const circle = 'oidc.circleci.com/'
    const claims = {
      [`${circle}vcs-origin`]: 'github.com/acme/shop',
      [`${circle}vcs-ref`]: 'refs/heads/main',
      [`${circle}job-id`]: 'a1f5',
    }
    expect(await pipelineOf('https://oidc.circleci.com/org/1', claims)).toMatchObject({
      ...{ repository: 'github.com/acme/shop', ref: 'refs/heads/main', job: 'a1f5' },
    })
  })
})

test('an API with another SECRET_KEY takes the token of a job, as it takes stored ones, while it is valid', async () => {
  await trust([main])
  const { accessToken } = await exchange()
  const beside = () => plausibleTokens(db, keyring('another secret key, of 32 characters or more'))
  for (const token of [accessToken, member.token]) expect(await beside()(token)).toBe(true)
  await trust([{ ...main, name: 'other' }])
  expect(await beside()(accessToken)).toBe(false)
})

test('a job may send the same again under its Idempotency-Key with its next token, and a job of another rule may not', async () => {
  const bound = (name: string, owner: string): Rule => ({
    ...{ name, user: member.username, owners: [owner] },
    claims: { repository: 'acme/shop', ref: `refs/heads/${name}` },
  })
  await trust([bound('main', 'team-a'), bound('other', 'team-b')])
  const headers = { 'idempotency-key': randomUUID(), 'gatewright-owner': 'team-a' }
  const entry = { model: 'service_core.application', identifiers: { slug: 'again' }, attrs: { name: 'Again' } }
  const send = async (who: Promise<Asker>) =>
    (await who).put('/api/v3/blueprints/', { version: 1, metadata: { name: 'again' }, entries: [entry] }, { headers })
  const first = await applied(send(job()))
  const again = await applied(send(job({ job_id: 'another', jti: randomUUID() })))
  expect(again.run).toBe(first.run)
  await answered(422, send(job({ ref: 'refs/heads/other' })), { code: 'idempotency_key_reused' })
})
