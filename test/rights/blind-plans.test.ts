import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Answer, type Asker, answered, applied, applyPath } from '../support/asker.ts'
import { aGroup, aProvider, aUser, installation, named } from '../support/kit.ts'

/**
 * A plan for a caller who may not view the row tells neither what it holds, nor whether a guess was right. An apply
 * has one guess, which is recorded.
 */

const on = await installation()

const blueprint = (who: Asker, entries: readonly object[], query = '?dry_run=true', headers = {}) =>
  who.put(`/api/v3/blueprints/${query}`, { version: 1, metadata: { name: 'guess' }, entries }, { headers })

type Run = { changes: readonly object[]; logs: readonly string[]; etag: string; submitter: number }

/** All that an answer and its run tell. The tag is a keyed digest of the document, too: it differs for each document. */
async function told(who: Asker, answer: Answer) {
  expect(answer.status, answer.text).toBe(200)
  const { changes, logs } = (await who.get(answer.headers['content-location'] ?? '')).json as Run
  return { body: answer.text, changes, logs }
}

async function provider() {
  const name = `blind-${randomUUID().slice(0, 8)}`
  const body = await named('oauth2', name)
  await answered(200, on.admin.put(applyPath, body))
  return { name, secret: String(body.provider.client_secret) }
}

const model = 'service_providers_oauth2.oauth2provider'

describe('a plan without view', () => {
  test('is the same for a right and a wrong guess of a secret', async () => {
    const { name, secret } = await provider()
    const who = await on.make.user({ permissions: ['change_oauth2provider'] })
    const guess = async (client_secret: string) =>
      told(who, await blueprint(who, [aProvider('oauth2', name, { client_secret })]))
    const right = await guess(secret)
    const wrong = await guess(`not ${secret}`)
    const short = await guess(`${secret.slice(1)}x`)
    expect(right).toEqual(wrong)
    expect(right).toEqual(short)
    expect(right.changes).toMatchObject([{ action: 'update', fields: { client_secret: 'changed' } }])
  })

  test('is the same for a right and a wrong guess through the PUT of an application', async () => {
    const { name, secret } = await provider()
    const permissions = ['change_application', 'view_application', 'change_oauth2provider']
    const who = await on.make.user({ permissions })
    const guess = async (client_secret: string) => {
      const body = { app: { slug: name }, provider_model: model, provider: { name, client_secret } }
      return told(who, await who.put(`${applyPath}?dry_run=true`, body))
    }
    expect(await guess(secret)).toEqual(await guess(`not ${secret}`))
  })

  test('shows no old value, and answers guesses of any field alike', async () => {
    const target = await on.make.user()
    const data = { email: 'old@example.com', attributes: { note: 'old' }, path: 'users/old' }
    await on.db.user.update({ where: { pk: target.pk }, data })
    const who = await on.make.user({ permissions: ['change_user'] })
    const guess = async (attrs: object) => {
      const identifiers = { username: target.username }
      return told(who, await blueprint(who, [{ model: 'service_core.user', identifiers, attrs }]))
    }
    const other = { email: 'new@example.com', attributes: { note: 'new' }, path: 'users/new' }
    const [same, changed] = [await guess(data), await guess(other)]
    expect(JSON.stringify(changed)).not.toContain('old')
    expect(same.changes).toMatchObject([
      { action: 'update', fields: { email: { from: { not_shown: true }, to: 'old@example.com' } } },
    ])
    const text = (value: unknown) => JSON.stringify(value).replaceAll('old', 'new')

    expect(text(same)).toBe(text(changed))
    expect(changed.logs).toEqual([expect.stringContaining('email (not shown) -> "new@example.com"')])
  })

  test('is denied for a more powerful user, whatever the guess, and so is the apply', async () => {
    const target = await on.make.user({ superuser: true })
    await on.db.user.update({ where: { pk: target.pk }, data: { email: 'root@example.com' } })
    const who = await on.make.user({ permissions: ['change_user'] })
    for (const query of ['?dry_run=true', ''])
      for (const email of ['root@example.com', 'other@example.com']) {
        const entry = aUser(target.username, { email })
        expect(await blueprint(who, [entry], query)).toMatchObject({ status: 403 })
      }
  })

  test('can be reviewed, and exactly it is applied', async () => {
    const { name, secret } = await provider()
    const who = await on.make.user({ permissions: ['change_oauth2provider', 'view_flow'] })
    const entries = [aProvider('oauth2', name, { client_secret: secret, sub_mode: 'user_email' })]
    const { headers: planned } = await blueprint(who, entries)
    const headers = { 'if-match': planned.etag ?? '', 'gatewright-allow': 'takeover' }
    expect(await blueprint(who, entries, '', headers)).toMatchObject({ status: 200, json: { applied: true } })
  })
})

test('a plan with view shows old values, and what is unchanged', async () => {
  const { name, secret } = await provider()
  const who = await on.make.user({ permissions: ['change_oauth2provider', 'view_oauth2provider'] })
  const entries = [aProvider('oauth2', name, { client_secret: secret })]
  expect((await told(who, await blueprint(who, entries))).changes).toMatchObject([
    { action: 'unchanged', fields: { client_secret: 'unchanged' } },
  ])
})

describe('an apply without view', () => {
  const secretOf = async (name: string) => (await on.db.provider.findUniqueOrThrow({ where: { name } })).secrets
  const audited = async (name: string) => {
    const { pk } = await on.db.provider.findUniqueOrThrow({ where: { name } })
    const rows = await on.db.auditRow.findMany({ orderBy: { pk: 'desc' }, take: 1 })
    return rows.flatMap(({ changes }) => changes as object[]).filter((each) => Object(each).key === pk)
  }

  test('has one guess of a secret: a wrong one is a write, and the run keeps either', async () => {
    const who = await on.make.user({ permissions: ['change_oauth2provider', 'view_flow'] })
    const { name, secret } = await provider()
    const guess = async (client_secret: string) => {
      const headers = { 'gatewright-allow': 'takeover' }
      const answer = await blueprint(who, [aProvider('oauth2', name, { client_secret })], '', headers)
      return (await who.get(answer.headers['content-location'] ?? '')).json
    }
    const before = await secretOf(name)
    expect(await guess(secret)).toMatchObject({
      submitter: who.pk,
      changes: [{ key: { name }, action: 'unchanged', fields: { client_secret: 'unchanged' } }],
    })
    expect(await secretOf(name)).toEqual(before)
    expect(await guess(`not ${secret}`)).toMatchObject({
      submitter: who.pk,
      changes: [{ key: { name }, action: 'update', fields: { client_secret: 'changed' } }],
    })
    expect(await secretOf(name)).not.toEqual(before)
    expect(await audited(name)).toMatchObject([{ action: 'update', fields: ['client_secret'] }])
  })

  test('refuses a right guess for what it refuses a wrong one', async () => {
    const name = `blind-${randomUUID().slice(0, 8)}`
    const body = await named('oauth2', name, { provider: { client_type: 'public', client_secret: '' } })
    expect((await on.admin.put(applyPath, body)).json).toMatchObject({ applied: true })
    const { settings } = await on.db.provider.findUniqueOrThrow({ where: { name } })
    // A secret that no confidential client may have, as an earlier version may have stored it.
    const data = { settings: { ...Object(settings), client_type: 'confidential' } }
    await on.db.provider.update({ where: { name }, data })
    const who = await on.make.user({ permissions: ['change_oauth2provider', 'view_flow'] })
    const guess = (of: string) => {
      const entry = aProvider('oauth2', of, { client_secret: '' })
      return blueprint(who, [entry], '', { 'gatewright-allow': 'takeover' })
    }
    const [right, wrong] = [await guess(name), await guess((await provider()).name)]
    expect([right.status, right.text]).toEqual([400, wrong.text])
  })

  test('that is refused tells nothing of what it compared', async () => {
    const { name, secret } = await provider()
    const who = await on.make.user({ permissions: ['change_oauth2provider', 'add_group', 'view_flow'] })
    const headers = { 'gatewright-allow': 'takeover' }
    const guess = async (client_secret: string) => {
      const release = on.hold()
      const group = randomUUID()
      const sent = blueprint(
        who,
        [aProvider('oauth2', name, { client_secret }), { ...aGroup(group), state: 'must_created' }],
        '',
        headers,
      )
      await on.queued(1)
      await on.make.group({ name: group })
      release()
      const answer = await sent
      const run = (await who.get(answer.headers['content-location'] ?? '')).json as Run
      return JSON.stringify([Object(answer.json).logs, run.logs, run.changes]).replaceAll(group, 'group')
    }
    const before = await secretOf(name)
    const right = await guess(secret)
    expect(right).toBe(await guess(`not ${secret}`))
    expect(right).toContain('rolled back')
    expect(await secretOf(name)).toEqual(before)
  })

  test('of a reviewed plan keeps the secret before when the same is sent again', async () => {
    const { name } = await provider()
    const who = await on.make.user({ permissions: ['change_oauth2provider', 'view_flow'] })
    const next = { value: `next ${randomUUID()}`, overlap: 'hours=24' }
    const send = async (client_secret: unknown) => {
      const entries = [aProvider('oauth2', name, { client_secret })]
      const { headers: planned } = await blueprint(who, entries)
      const headers = { 'if-match': planned.etag ?? '', 'gatewright-allow': 'takeover' }
      await applied(blueprint(who, entries, '', headers))
      return Object(await secretOf(name)).previous_client_secret
    }
    const previous = await send(next)
    expect(previous).toEqual(expect.any(String))
    expect(await send(next)).toBe(previous)
    expect(await send(next.value)).toBe(previous)
    expect(await send(`other ${randomUUID()}`)).toBeUndefined()
  })
})

test('an apply with view says that a secret is unchanged, and writes nothing', async () => {
  const { name, secret } = await provider()
  const who = await on.make.user({ permissions: ['change_oauth2provider', 'view_oauth2provider'] })
  const entries = [aProvider('oauth2', name, { client_secret: secret })]
  const before = await on.db.provider.findUniqueOrThrow({ where: { name } })
  expect((await blueprint(who, entries, '')).text).toContain(`provider oauth2 \\"${name}\\" unchanged`)
  expect((await on.db.provider.findUniqueOrThrow({ where: { name } })).secrets).toEqual(before.secrets)
})
