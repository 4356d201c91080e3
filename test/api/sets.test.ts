import { setTimeout as delay } from 'node:timers/promises'
import { QueueEvents } from 'bullmq'
import { describe, expect, test } from 'vitest'
import { documentLimits } from '../../src/document/document.ts'
import { aFlow, answered, applied, installation, named, needs, objects } from '../support/kit.ts'

/** Sets through PUT /api/v3/blueprints/: lists of submissions, and large documents. */

const path = '/api/v3/blueprints/'

const there = await installation()
const deployer = await there.make.user({ groups: ['6f7e0000-0000-4000-8000-000000000502'] })

const { runOf } = deployer

describe('a list of submissions', () => {
  test('is applied by a user who may apply each of them, and again changes nothing', async () => {
    const list = await Promise.all([named('oauth2', 'first'), named('saml', 'second'), named('scim', 'third')])
    const answer = await applied(deployer.put(path, list))
    expect(answer.logs.map((line) => line.replace(/ \(pk .*/, ''))).toEqual([
      'provider oauth2 "first" created',
      'application "first" created',
      'provider saml "second" created',
      'application "second" created',
      'provider scim "third" created',
      'application "third" created',
    ])
    expect(await runOf(answer)).toMatchObject({ title: 'apply 3 submissions', kind: 'blueprint', slug: null })
    const again = await deployer.put(path, list)
    expect(again.logs.every((line) => line.endsWith(' unchanged'))).toBe(true)
  })

  test('may stand in an object, as generated clients send it, with the places of errors there', async () => {
    const submissions = [await named('radius', 'boxed-a'), await named('radius', 'boxed-b')]
    const answer = await applied(deployer.put(path, { submissions }))
    expect(await runOf(answer)).toMatchObject({ title: 'apply 2 submissions' })
    expect((await deployer.put(path, submissions)).logs.every((line) => line.endsWith(' unchanged'))).toBe(true)
    const wrong = await named('radius', 'boxed-c', {
      provider: { authorization_flow: 'no-such-flow' },
      app: { slug: '!' },
    })
    for (const [sent, errors] of [
      [
        [submissions[0], wrong],
        [
          { code: 'wrong_format', pointer: '/submissions/1/app/slug' },
          { code: 'unknown_name', pointer: '/submissions/1/provider/authorization_flow' },
        ],
      ],
      [[{ app: {} }], [{ code: 'required', pointer: '/submissions/0/provider' }]],
      [[], [{ code: 'too_short', pointer: '/submissions' }]],
      ['text', [{ code: 'wrong_type', pointer: '/submissions' }]],
    ] as const) {
      const refused = await answered(400, deployer.put(path, { submissions: sent }))
      for (const error of errors) expect(refused.errors).toContainEqual(expect.objectContaining(error))
    }
    const beside = await deployer.put(path, { submissions, version: 1 })
    expect(beside).toMatchObject({ status: 400, errors: [{ code: 'unknown_field', pointer: '/version' }] })
  })

  test('a wrong one is refused with its place, and leaves nothing of the others', async () => {
    const before = await objects(there.db)
    const wrong = await named('oauth2', 'wrong', { provider: { authorization_flow: 'no-such-flow', sub_mod: 1 } })
    await answered(400, deployer.put(path, [await named('oauth2', 'right'), wrong, { app: {} }]), {
      code: 'invalid',
      1: {
        provider: {
          authorization_flow: [expect.stringMatching(/^No flow is called "no-such-flow"/)],
          sub_mod: [expect.stringMatching(/^Unknown field/)],
        },
      },
      2: { provider: ['This field is required.'], provider_model: ['This field is required.'] },
    })
    expect(await objects(there.db)).toEqual(before)
  })

  test('one that the caller may not apply denies all of them', async () => {
    const user = await there.make.user({
      permissions: ['add_application', 'change_application', 'add_oauth2provider', 'change_oauth2provider'],
    })
    const before = await objects(there.db)
    const list = [await named('oauth2', 'mine'), await named('saml', 'not-mine')]
    await answered(403, user.put(path, list), {
      detail: expect.stringMatching(/^You may not write provider saml "not-mine": /),
    })
    expect(await objects(there.db)).toEqual(before)
  })

  test('a user who may see and write no such objects is not told whether one is there, nor its name', async () => {
    const user = await there.make.user()
    const { pk, username } = await there.make.user()
    const asks = async (identifiers: object) => {
      const entries = [{ model: 'service_core.user', identifiers }]
      const answer = await user.put(path, { version: 1, metadata: { name: 'asks' }, entries })
      return [answer.status, answer.detail]
    }
    const detail = (what: unknown) =>
      `You may not write user ${JSON.stringify(what)}: the permission add_user, change_user or delete_user is missing.`
    for (const sent of [username, 'not-there']) expect(await asks({ username: sent })).toEqual([403, detail(sent)])
    for (const sent of [pk, 987_654]) expect(await asks({ pk: sent })).toEqual([403, detail(sent)])
  })

  test.each([
    ['none', [], /Holds no submission/],
    ['too many', Array.from({ length: 5_001 }, () => ({})), /5001 submissions: at most 5000/],
    ['no objects', [1], /Must be an object with app, provider_model and provider/],
  ])('of %s is refused', async (_, list, why) => {
    expect((await answered(400, deployer.put(path, list))).text).toEqual(expect.stringMatching(why))
  })
})

const flows = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) =>
    aFlow(`many-${from + index}`, { name: 'Many', title: 'Many', designation: 'recovery' }),
  )
const document = (entries: readonly object[]) => ({ version: 1, metadata: { name: 'many' }, entries })

describe('limits', () => {
  test('10 001 entries are refused, and the answer to a body that is too large names the limit of this path', async () => {
    const many = await there.admin.put(path, document(flows(documentLimits.entries + 1)))
    expect([many.status, many.text]).toEqual([400, expect.stringMatching(/10000/)])
    await answered(413, there.admin.put(path, { text: 'x'.repeat(documentLimits.bytes) }), {
      detail: `The body is larger than ${documentLimits.bytes} bytes.`,
    })
    const elsewhere = await there.admin.put('/api/v3/core/transactional/applications/', { text: 'x'.repeat(1_048_576) })
    expect(elsewhere).toMatchObject({ status: 413, json: { detail: 'The body is larger than 1048576 bytes.' } })
  })

  test('JSON of more than 1 MiB is taken', async () => {
    const entries = flows(3_000).map((each) => ({ ...each, attrs: { ...each.attrs, title: 'x'.repeat(400) } }))
    expect(JSON.stringify(entries).length).toBeGreaterThan(1_048_576)
    const answer = await there.admin.put(`${path}?dry_run=true`, document(entries), {
      headers: { prefer: 'respond-async' },
    })
    expect(answer.status).toBe(202)
  })
})

describe.runIf(needs('redis-server'))('on Redis', () => {
  test('while it runs, its progress is an event of the queue, and stands in its run', async () => {
    const on = await installation({ queue: 'redis' })
    const events = new QueueEvents('apply', { connection: { url: on.redisUrl ?? '' } })
    const seen: unknown[] = []
    events.on('progress', ({ data }) => seen.push(data))
    await events.waitUntilReady()
    try {
      const total = 6_000
      const sent = await answered(
        202,
        on.admin.put(path, document(flows(total)), { headers: { prefer: 'respond-async' } }),
      )
      const { run } = sent.json as { run: string }
      const shown: unknown[] = []
      for (;;) {
        const found = (await on.admin.get(`${run}?include_blueprint=false`)).json as {
          state: string
          progress: unknown
        }
        if (found.state === 'running' && found.progress !== null) shown.push(found.progress)
        if (!['queued', 'running'].includes(found.state)) break
        await delay(50)
      }
      expect(seen).toContainEqual({ done: expect.any(Number), total, progress: expect.any(Number) })
      expect(shown).toContainEqual({ done: expect.any(Number), total })
      expect((await on.admin.get(run)).json).toMatchObject({
        ...{ applied: true, progress: null },
        blueprint: expect.stringContaining('many-5999'),
      })
      expect((await on.admin.get(`${run}?include_blueprint=false`)).json).toMatchObject({
        applied: true,
        blueprint: '',
      })
    } finally {
      await events.close()
    }
  })
})
