import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { nameLock } from '../../src/db/locks.ts'
import { type Asker, answered, applied, applyPath, type SubmitOptions } from '../support/asker.ts'
import { anApplication, aProvider } from '../support/entries.ts'
import { installation, type Kind, name, named, objects, rows, sql, until } from '../support/kit.ts'

/** What an apply does to rows that it does not name: it is reported, and `replace_provider=true` removes a provider. */

const there = await installation()

const replacing = 'replace_provider=true'
type Options = SubmitOptions & { by?: Asker; kind?: Kind }

/** Applies the application under a provider of this name. */
const put = (provider: string, { by = there.admin, kind = 'oauth2', ...options }: Options = {}) =>
  by.submit(kind, name, {
    ...options,
    provider: { name: provider, ...(kind === 'oauth2' && { client_id: `client-${provider}` }) },
  })
const { apply, runOf } = there.admin
const pkOf = async (provider: string) => (await there.db.provider.findUnique({ where: { name: provider } }))?.pk
const remedy = 'delete it, or send ?replace_provider=true next time'

describe('an application with another provider', () => {
  test('leaves the old one without an application, which is reported once, with the remedy', async () => {
    await put(`${name}-old`)
    const body = await put(`${name}-new`)
    expect(body.logs.at(-1)).toBe(`provider oauth2 "${name}-old" has no application now: ${remedy}`)
    expect(await pkOf(`${name}-old`)).toBeDefined()
    expect((await put(`${name}-new`)).logs).toEqual([
      `provider oauth2 "${name}-new" unchanged`,
      `application "${name}" unchanged`,
    ])
  })

  test('would leave it, in a plan', async () => {
    await put(`${name}-old`)
    const line = `provider oauth2 "${name}-old" would have no application now: ${remedy}`
    expect((await put(`${name}-new`, { query: 'dry_run=true' })).logs.at(-1)).toBe(line)
  })

  test('does not report a provider that another application has as a backchannel provider', async () => {
    await put(`${name}-old`, { kind: 'scim' })
    const pk = await pkOf(`${name}-old`)
    const other = anApplication(`${name}-2`)
    await apply([{ ...other, attrs: { name: 'Two', backchannel_providers: [pk] } }])
    expect((await put(`${name}-new`, { query: replacing })).logs).toHaveLength(2)
    expect(await pkOf(`${name}-old`)).toBe(pk)
  })

  test('reports a backchannel provider that it gives up', async () => {
    await put(`${name}-scim`, { kind: 'scim' })
    const pk = await pkOf(`${name}-scim`)
    await apply([anApplication(name, { provider: null, backchannel_providers: [pk] })])
    const answer = await apply([anApplication(name, { backchannel_providers: [] })], { query: replacing })
    expect(answer.logs.at(-1)).toBe(`provider scim "${name}-scim" has no application now: delete it, or use it`)
    expect(await pkOf(`${name}-scim`)).toBe(pk)
  })
})

describe('replace_provider=true', () => {
  test('deletes it in the same transaction, with a change, an audit row and a line of the log', async () => {
    await put(`${name}-old`)
    const pk = await pkOf(`${name}-old`)
    const answer = await put(`${name}-new`, { query: replacing })
    expect(answer.logs.at(-1)).toBe(`provider oauth2 "${name}-old" deleted (pk ${pk})`)
    expect(await pkOf(`${name}-old`)).toBeUndefined()
    const removed = { model: aProvider('oauth2', '').model, action: 'delete' }
    expect(await runOf(answer)).toMatchObject({
      changes: [{ action: 'create' }, { action: 'update' }, { ...removed, key: { name: `${name}-old` } }],
    })
    const { runId } = answer
    const audited = await there.db.auditRow.findFirstOrThrow({ where: { runId } })
    expect(audited.changes).toContainEqual(expect.objectContaining({ ...removed, key: pk, fields: [] }))
    expect((await put(`${name}-new`, { query: replacing })).logs).toEqual([
      `provider oauth2 "${name}-new" unchanged`,
      `application "${name}" unchanged`,
    ])
  })

  test('does not delete one that another application has taken before it was locked', async () => {
    await put(`${name}-old`, { kind: 'scim' })
    const providerPk = (await pkOf(`${name}-old`)) ?? expect.fail('no provider')
    const slug = `${name}-2`
    const other = await there.db.application.create({ data: { pk: randomUUID(), name: slug, slug } })
    let sending: ReturnType<typeof put> | undefined
    await transaction(there.db, async (tx) => {
      const lock = nameLock('providers', [`${name}-old`])
      await rows(tx, sql`SELECT pg_advisory_xact_lock(${lock}::bigint)::text`)
      sending = put(`${name}-new`, { query: replacing })
      const waiting = sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`
      await until('the apply to wait for the name', async () => (await rows(there.db, waiting)).length > 0)
      await tx.backchannelProvider.create({ data: { applicationPk: other.pk, providerPk } })
    })
    expect(await sending).toMatchObject({ status: 200, json: { applied: true } })
    expect(await pkOf(`${name}-old`)).toBe(providerPk)
    expect(await there.db.backchannelProvider.count({ where: { providerPk } })).toBe(1)
  })

  test('is planned, and the plan is what is applied', async () => {
    await put(`${name}-old`)
    const body = await named('oauth2', name, { provider: { name: `${name}-new` } })
    const before = await objects(there.db)
    const planned = await there.admin.put(`${applyPath}?dry_run=true&${replacing}`, body)
    expect(planned.logs.at(-1)).toBe(`provider oauth2 "${name}-old" would be deleted`)
    expect(await objects(there.db)).toEqual(before)
    const tag = { headers: { 'if-match': planned.headers.etag ?? '' } }
    expect((await there.admin.put(applyPath, body, tag)).status).toBe(412)
    const done = await applied(there.admin.put(`${applyPath}?${replacing}`, body, tag))
    const [one, two] = [await runOf(planned), await runOf(done)] as { changes: object }[]
    expect(two?.changes).toEqual(one?.changes)
  })

  test('needs the permission to delete a provider of that kind', async () => {
    const writes = ['oauth2', 'saml'].flatMap((kind) => [`add_${kind}provider`, `change_${kind}provider`])
    const permissions = ['add_application', 'change_application', ...writes]
    const writer = await there.make.user({ permissions: [...permissions, 'delete_oauth2provider'] })
    const viewer = await there.make.user({ permissions: [...permissions, 'view_samlprovider'] })
    const remover = await there.make.user({ permissions: [...permissions, 'delete_samlprovider'] })
    await put(`${name}-old`, { kind: 'saml' })
    const before = await objects(there.db)
    for (const [by, what] of [
      [writer, 'the provider saml that follows from this'],
      [viewer, `provider saml "${name}-old"`],
    ] as const)
      await answered(403, put(`${name}-new`, { by, query: replacing }), {
        detail: `You may not delete ${what}: the permission delete_samlprovider is missing.`,
      })
    expect(await objects(there.db)).toEqual(before)
    expect((await put(`${name}-new`, { by: remover, query: replacing })).status).toBe(200)
    expect(await pkOf(`${name}-old`)).toBeUndefined()
  })

  test('deletes nothing of another owner without takeover', async () => {
    await put(`${name}-old`, { owner: 'team-b' })
    await there.db.application.update({ where: { slug: name }, data: { owner: 'team-a' } })
    const headers = { 'gatewright-owner': 'team-a' }
    const answer = await answered(409, put(`${name}-new`, { query: replacing, headers }), { code: 'conflict' })
    expect(answer.text).toContain(`provider oauth2 \\"${name}-old\\" belongs to owner \\"team-b\\"`)
    const allowed = await put(`${name}-new`, {
      query: replacing,
      headers: { ...headers, 'gatewright-allow': 'takeover' },
    })
    expect(allowed.status).toBe(200)
    expect(await pkOf(`${name}-old`)).toBeUndefined()
  })

  test('keeps what the document names itself', async () => {
    await put(`${name}-old`)
    const entries = [aProvider('oauth2', `${name}-old`), anApplication(name, { provider: null })]
    const answer = await apply(entries, { query: replacing })
    expect(answer.logs.at(-1)).toBe(`provider oauth2 "${name}-old" has no application now: delete it, or use it`)
    expect(await pkOf(`${name}-old`)).toBeDefined()
  })

  test('of a blueprint that deletes the application deletes its provider', async () => {
    await put(`${name}-old`)
    expect((await apply([{ ...anApplication(name), state: 'absent' }], { query: replacing })).logs.at(-1)).toMatch(
      /^provider .*deleted/,
    )
    expect(await pkOf(`${name}-old`)).toBeUndefined()
  })

  test.each(['1', 'yes', ''])('is true or false, and not %j', async (value) => {
    const answer = await put(name, { query: `replace_provider=${value}` })
    expect(answer).toMatchObject({ status: 400, json: { replace_provider: ['Must be true or false.'] } })
  })
})

describe('an application that loses its provider', () => {
  test('is reported, with the remedy', async () => {
    await put(name)
    expect((await apply([{ ...aProvider('oauth2', name), state: 'absent' }])).logs.at(-1)).toBe(
      `application "${name}" has no provider now, because provider oauth2 "${name}" is deleted: send it with another, or delete it`,
    )
  })

  test('is not reported when the document deletes it, or gives it another', async () => {
    await put(name)
    const gone = await apply([
      { ...aProvider('oauth2', name), state: 'absent' },
      { ...anApplication(name), state: 'absent' },
    ])
    expect(gone.logs).toHaveLength(2)
  })

  test('of several is reported by name', async () => {
    await put(`${name}-scim`, { kind: 'scim' })
    const pk = await pkOf(`${name}-scim`)
    await apply([anApplication(name, { provider: null, backchannel_providers: [pk] })])
    const scim = aProvider('scim', `${name}-scim`)
    expect((await apply([{ ...scim, state: 'absent' }])).logs.at(-1)).toBe(
      `application "${name}" lost provider scim "${name}-scim" from backchannel_providers: send the field again with another, if it needs one`,
    )
  })

  test('to another application is refused: a provider belongs to one', async () => {
    await put(name)
    const other = anApplication(`${name}-2`)
    const answer = await answered(400, apply([{ ...other, attrs: { name: 'Two', provider: await pkOf(name) } }]))
    expect(answer.text).toContain(`belongs to application \\"${name}\\"`)
  })
})
