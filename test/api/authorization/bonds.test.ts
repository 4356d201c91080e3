import { randomUUID } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'
import { permissionNames } from '../../../src/models/registry.ts'
import { aGroup, applied, applyPath, dashboardOf, installation, named, origin } from '../../support/kit.ts'

/** A token that is bound to stacks writes by their documents alone: every route that writes is tried with it. */

const routes: string[] = []
// Fastify's own report of the routes, so that none is forgotten in a list of ours.
subscribe('fastify.initialization', (message) => {
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push(`${each} ${url}`)
  })
})

const there = await installation()
const { admin, make, db } = there
const dashboard = dashboardOf(there)

/** They write nothing that belongs to an installation. */
const harmless = [
  'POST /api/v3/auth/token/',
  'POST /admin/login/',
  'POST /admin/logout/',
  'POST /admin/times/',
  ...['DELETE', 'PATCH', 'POST', 'PUT'].map((method) => `${method} /admin/queues/api/*`),
]

type Asked = { readonly url: string; readonly body?: object; readonly headers?: Record<string, string> }

const fresh = () => `bond-${randomUUID().slice(0, 8)}`
const user = await make.user()
const all = permissionNames(there.engine.registry)
const releases: (() => unknown)[] = []
afterEach(async () => {
  for (const release of releases.splice(0)) await release()
})

async function aToken(): Promise<string> {
  const identifier = fresh()
  await admin.post('/api/v3/core/tokens/', { identifier, user: user.pk })
  return `/api/v3/core/tokens/${identifier}/`
}

async function aMember(): Promise<string> {
  const stack = fresh()
  await applied(admin.apply([aGroup(fresh())], { stack }))
  return stack
}

const requests: Readonly<Record<string, () => Promise<Asked>>> = {
  [`PUT ${applyPath}`]: async () => ({ url: applyPath, body: await named('radius', fresh()) }),
  'PUT /api/v3/blueprints/': async () => ({
    url: '/api/v3/blueprints/',
    body: { version: 1, metadata: { name: 'test' }, entries: [aGroup(fresh())] },
    headers: { 'gatewright-stack': fresh() },
  }),
  'POST /api/v3/blueprints/runs/:id/apply/': async () => {
    const { runId } = await applied(admin.apply([aGroup(fresh())]))
    // The document of another user takes a plan first.
    return { url: `/api/v3/blueprints/runs/${runId}/apply/?dry_run=true` }
  },
  'POST /api/v3/blueprints/runs/:id/cancel/': async () => {
    releases.push(there.hold())
    const { runId } = await admin.apply([aGroup(fresh())], { prefer: 'respond-async' })
    return { url: `/api/v3/blueprints/runs/${runId}/cancel/` }
  },
  'DELETE /api/v3/blueprints/stacks/:name/members/:model/:member/': async () => {
    const stack = await aMember()
    const { key } = await db.stackMember.findFirstOrThrow({ where: { stackName: stack } })
    return { url: `/api/v3/blueprints/stacks/${stack}/members/group/${key}/` }
  },
  'DELETE /api/v3/core/applications/:slug/': async () => {
    const slug = fresh()
    await applied(admin.submit('radius', slug))
    return { url: `/api/v3/core/applications/${slug}/` }
  },
  'POST /api/v3/core/groups/': async () => ({ url: '/api/v3/core/groups/', body: { name: fresh() } }),
  'PATCH /api/v3/core/groups/:group_uuid/': async () => ({
    url: `/api/v3/core/groups/${(await make.group()).pk}/`,
    body: { attributes: { a: 1 } },
  }),
  'POST /api/v3/core/tokens/': async () => ({
    url: '/api/v3/core/tokens/',
    body: { identifier: fresh(), user: user.pk },
  }),
  'PATCH /api/v3/core/tokens/:identifier/': async () => ({ url: await aToken(), body: { description: 'changed' } }),
  'DELETE /api/v3/core/tokens/:identifier/': async () => ({ url: await aToken() }),
  'GET /api/v3/core/tokens/:identifier/view_key/': async () => ({ url: `${await aToken()}view_key/` }),
  'PUT /api/v3/consumers/self/': async () => ({
    url: '/api/v3/consumers/self/',
    body: { issuer: `https://${fresh()}.example` },
  }),
  'POST /api/v3/consumers/oauth2/consents/': async () => ({
    url: '/api/v3/consumers/oauth2/consents/',
    body: { consents: [{ user: user.username, client_id: 'none', permissions: 'openid' }] },
  }),
  'PATCH /api/v3/consumers/users/': async () => ({
    url: '/api/v3/consumers/users/',
    body: { logins: [{ user: user.username, last_login: new Date().toISOString() }] },
  }),
  'POST /admin/applications/': async () => ({ url: '/admin/applications/' }),
  'POST /admin/runs/:id/roll-back/': async () => {
    const { runId } = await applied(admin.apply([aGroup(fresh())]))
    return { url: `/admin/runs/${runId}/roll-back/` }
  },
  // No apply behind them: its queue may be paused.
  'POST /admin/pause/': async () => ({ url: '/admin/pause/' }),
  'POST /admin/resume/': async () => {
    await there.queue.pause()
    releases.push(() => there.queue.resume())
    return { url: '/admin/resume/' }
  },
}

test('every route that writes is tried', () => {
  const writing = routes.filter((route) => !/^(GET|HEAD|OPTIONS) /.test(route))
  const tried = Object.keys(requests).filter((route) => !route.startsWith('GET '))
  expect(new Set([...tried, ...harmless])).toEqual(new Set(writing))
})

/** The token of a superuser, with all permissions, and bound to a stack of this name. */
const bound = async (...stacks: string[]) => {
  const owner = await make.user({ superuser: true })
  return make.token(owner.pk, { ceiling: [...all, ...stacks.map((name) => `stack:${name}`)] })
}

async function send(token: string, operation: string, { url, body, headers }: Asked) {
  const [method = ''] = operation.split(' ')
  const login = url.startsWith('/admin/')
    ? { origin, host: '127.0.0.1:9000', cookie: await dashboard.session(token) }
    : {}
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) }
  return () => there.as(token).send({ method, url, headers: { ...login, ...type, ...headers }, ...payload })
}

describe.each(Object.keys(requests))('%s', (operation) => {
  test.each([
    ['a stack', fresh()],
    // No stack has the empty name.
    ['no stack at all', ''],
  ])('is refused to a token that is bound to %s', async (_, stack) => {
    const asked = (await requests[operation]?.()) ?? expect.fail(operation)
    const asking = await send(await bound(stack), operation, asked)
    const { status, text } = await there.untouched(asking)
    expect([status, text]).toEqual([403, expect.stringMatching(/bound to/)])
  })

  test('is taken from the same token without the bond', async () => {
    const asked = (await requests[operation]?.()) ?? expect.fail(operation)
    const { status, text } = await (await send(await bound(), operation, asked))()
    expect([status < 400, status, text]).toEqual([true, expect.any(Number), expect.any(String)])
  })
})
