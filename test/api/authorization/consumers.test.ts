import { test } from 'vitest'
import { installation } from '../../support/kit.ts'
import { rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

/** What servers that sign users in tell back, and where they are found. */

const there = await installation()
const on = stage(there)
const { pk: user } = await there.make.user()

const bodies: Readonly<Record<string, object>> = {
  'POST /api/v3/consumers/oauth2/consents/': { consents: [{ user, client_id: 'wiki', permissions: 'openid' }] },
  'PUT /api/v3/consumers/self/': { issuer: 'https://id.example.com' },
  'PATCH /api/v3/consumers/users/': { logins: [{ user, last_login: '2026-01-01T00:00:00Z' }] },
}

test.each(await rowsOf(...Object.keys(bodies)))('%s', (_, row) =>
  on.try(row, async () => {
    const [method = '', url = ''] = row.operation.split(' ')
    return { method, url, body: bodies[row.operation] ?? {} }
  }),
)
