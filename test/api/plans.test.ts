import fc from 'fast-check'
import { describe, expect, inject, test } from 'vitest'
import { type Body, type Kind, kinds, named } from '../support/examples.ts'
import { type Asker, answered, applied, applyPath, documentsPath, installation, name, objects } from '../support/kit.ts'

/** `dry_run=true`: what an apply would do, and `If-Match`: nothing else than what was reviewed. */

const there = await installation()

const plan = (body: unknown, as: Asker = there.admin) => as.put(`${applyPath}?dry_run=true`, body)
const apply = (body: unknown, ifMatch?: string) => there.admin.put(applyPath, body, ifMatch ? { ifMatch } : {})
const { runOf } = there.admin

/** A plan that leaves everything as it was. */
async function harmless(body: unknown) {
  const answer = await there.untouched(() => plan(body))
  return { answer, run: await runOf(answer), tag: answer.etag }
}

describe('a plan', () => {
  test('says what an apply would create, and creates nothing', async () => {
    const body = await named('oauth2', name)
    const { answer, run, tag } = await harmless(body)
    await answered(200, answer, {
      applied: false,
      logs: [`provider oauth2 "${name}" would be created`, `application "${name}" would be created`],
    })
    expect(run).toMatchObject({ mode: 'plan', state: 'done', applied: false, reason: null, etag: tag })
    expect(run.changes).toMatchObject([
      {
        model: 'service_providers_oauth2.oauth2provider',
        key: { name },
        action: 'create',
        fields: { client_id: { from: null, to: `client-${name}` }, client_secret: 'changed' },
      },
      {
        model: 'service_core.application',
        key: { slug: name },
        action: 'create',
        fields: { provider: { from: null, to: name } },
      },
    ])
    expect(JSON.stringify(run)).not.toContain(String(body.provider.client_secret))
  })

  test('names each field with its old and its new value, and of a secret only whether it changes', async () => {
    const body = await named('oauth2', name, { app: { group: 'Old' } })
    await apply(body)
    const { client_secret: secret } = body.provider
    const changed = await named('oauth2', name, { app: { group: 'New' }, provider: { client_secret: secret } })
    const first = await harmless(changed)
    expect(first.run.changes).toEqual([
      expect.objectContaining({ action: 'unchanged', fields: { client_secret: 'unchanged' } }),
      expect.objectContaining({ action: 'update', fields: { group: { from: 'Old', to: 'New' } } }),
    ])
    expect(first.answer.json).toEqual({
      applied: false,
      logs: [`provider oauth2 "${name}" unchanged`, `application "${name}" would be updated: group "Old" -> "New"`],
    })
    const { run } = await harmless({
      ...changed,
      provider: { ...changed.provider, client_secret: 'another-secret-0123456789' },
    })
    expect(run.changes[0]).toMatchObject({ action: 'update', fields: { client_secret: 'changed' } })
  })

  test('of values that the service generates says so, and gives none away', async () => {
    const body = await named('oauth2', name, { provider: { client_id: undefined, client_secret: undefined } })
    const { run } = await harmless(body)
    expect(run.changes[0]?.fields).toMatchObject({
      client_id: { from: null, to: { set_by_server: true } },
      client_secret: 'changed',
    })
    expect(run).toMatchObject({ generated: {} })
  })

  test('of equal states has equal tags, and of other states others', async () => {
    const body = await named('scim', name)
    const tags = [await harmless(body), await harmless(body)].map(({ tag }) => tag)
    expect(tags[0]).toMatch(/^"[\w-]{22}"$/)
    expect(tags[1]).toBe(tags[0])
    await apply(body)
    const { tag } = await harmless(body)
    expect(tag).not.toBe(tags[0])
    // Another document that changes nothing either.
    const other = { ...body, app: { ...body.app, open_in_new_tab: false } }
    expect((await harmless(other)).tag).not.toBe(tag)
  })

  test('is refused as the apply would be', async () => {
    const body = await named('oauth2', name)
    const nobody = await there.make.user({})
    expect(await plan(body, nobody)).toMatchObject({ status: 403 })
    expect(await plan({ ...body, app: { ...body.app, slug: 'a b' } })).toMatchObject({ status: 400 })
    expect(await plan(body)).toMatchObject({ status: 200 })
    await apply(body)
    const url = `${applyPath}?dry_run=true`
    expect(await there.admin.put(url, body, { ifNoneMatch: '*' })).toMatchObject({ status: 412 })
    const owned = { owner: 'team-b' }
    await there.admin.put(applyPath, body, { owner: 'team-a' })
    // A plan acknowledges a takeover, and lists it.
    expect(await there.admin.put(applyPath, body, owned)).toMatchObject({ status: 409 })
    const planned = await answered(200, there.admin.put(url, body, owned))
    expect(planned.text).toContain(`application \\"${name}\\" belonged to owner \\"team-a\\"`)
    await applied(there.admin.put(applyPath, body, { ...owned, ifMatch: planned.etag }))
  })

  test.each(['', '1', 'yes', 'true&dry_run=false'])(
    'dry_run=%s is refused: it would have been applied',
    async (value) => {
      const answer = await there.admin.put(`${applyPath}?dry_run=${value}`, await named('oauth2', name))
      expect(answer).toMatchObject({ status: 400, json: { dry_run: [expect.any(String)] } })
      expect(await there.db.application.count({ where: { slug: name } })).toBe(0)
    },
  )
})

describe('an apply of a reviewed plan', () => {
  test('does what was planned, and says so', async () => {
    const body = await named('proxy', name)
    const { run, tag } = await harmless(body)
    const done = await applied(apply(body, tag))
    expect((await runOf(done)).changes).toEqual(run.changes)
  })

  test('is refused when a row changed after the plan, and names it', async () => {
    const body = await named('oauth2', name, { app: { group: 'Old' } })
    await apply(body)
    const changed = await named('oauth2', name, { app: { group: 'New' } })
    const { tag } = await harmless(changed)
    const other = await apply(
      await named('oauth2', name, { app: { group: 'Another', meta_publisher: 'Another pipeline' } }),
    )
    const id = other.runId
    const before = await objects(there.db)
    const { errors } = await answered(412, apply(changed, tag), {
      code: 'precondition_failed',
      detail: expect.stringMatching(
        new RegExp(
          `^rolled back: application "${name}" changed after the plan: meta_publisher, group by run ${id} of \\S+, [\\dT:.-]+Z. Plan again, and review that plan.$`,
        ),
      ),
    })
    expect(errors).toEqual([
      { code: 'changed', message: expect.stringMatching(/ changed after the plan: /), pointer: '/app' },
    ])
    const newest = await there.db.run.findFirstOrThrow({ orderBy: { createdAt: 'desc' } })
    expect((await there.admin.get(`${documentsPath}runs/${newest.id}/`)).json).toMatchObject({ errors })
    expect(await objects(there.db)).toEqual(before)
    expect(await apply(changed, (await harmless(changed)).tag)).toMatchObject({ status: 200 })
  })

  test('is refused when a secret changed after the plan', async () => {
    const body = await named('oauth2', name)
    await apply(body)
    const { tag } = await harmless(body)
    await apply(await named('oauth2', name, { provider: { client_secret: 'another-secret-0123456789' } }))
    expect(await apply(body, tag)).toMatchObject({ status: 412 })
  })

  test('is unchanged when it was applied already, and says so', async () => {
    const body = await named('ldap', name)
    const { tag } = await harmless(body)
    const { runId } = await applied(apply(body, tag))
    const again = await applied(apply(body, tag))
    const text = 'nothing is left of the reviewed plan: it stands, applied by run'
    expect(again.logs.at(-1)).toContain(`${text} ${runId} of admin, `)
    const run = await runOf(again)
    expect(run.changes.map(({ action }: { action: string }) => action)).toEqual(['unchanged', 'unchanged'])
  })

  test('is refused when another document was applied, and when what was there is gone', async () => {
    const body = await named('ldap', name)
    const { tag } = await harmless(body)
    await apply(await named('ldap', name, { app: { group: 'Another' } }))
    expect(await apply(body, tag)).toMatchObject({ status: 412 })
    await apply(body)
    const later = (await harmless(body)).tag
    await there.db.application.delete({ where: { slug: name } })
    expect(await apply(body, later)).toMatchObject({ status: 412 })
  })

  test('is refused for another document, and for a plan that does not exist', async () => {
    const body = await named('saml', name)
    const { tag } = await harmless(body)
    const other = await named('saml', name, { app: { group: 'Other' } })
    for (const [sent, why] of [
      [other, 'the plan is of another document'],
      [body, undefined],
    ] as const)
      expect(await apply(sent, tag)).toMatchObject(
        why === undefined ? { status: 200 } : { status: 412, json: { detail: expect.stringContaining(why) } },
      )
    await answered(412, apply(body, '"0123456789012345678901"'), {
      detail: expect.stringContaining('there is no such plan'),
    })
  })

  test.each(['*', 'W/"0123456789012345678901"', '0123456789012345678901', '"short"', '"a", "b"'])(
    'If-Match: %s is not understood, and refused',
    async (tag) => {
      await answered(400, apply(await named('oauth2', name), tag), {
        'If-Match': [expect.stringContaining('ETag that a plan answered')],
      })
    },
  )

  test('a plan takes none', async () => {
    const answer = await there.admin.submit('oauth2', name, {
      query: 'dry_run=true',
      ifMatch: '"0123456789012345678901"',
    })
    expect(answer).toMatchObject({ status: 400, json: { 'If-Match': [expect.any(String)] } })
  })
})

/** Few names and values, so that submissions meet what is there, and break rules of uniqueness and ownership. */
const submissions = fc.record({
  kind: fc.oneof({ weight: 4, arbitrary: fc.constant<Kind>('oauth2') }, fc.constantFrom(...kinds)),
  slug: fc.constantFrom('one', 'two'),
  provider: fc.constantFrom('first', 'second', 'third'),
  group: fc.constantFrom(undefined, 'A', 'B'),
  publisher: fc.constantFrom(undefined, 'a', 'b'),
  secret: fc.constantFrom('secret-a-0123456789012345', 'secret-b-0123456789012345', undefined),
  owner: fc.constantFrom(undefined, undefined, undefined, 'team-a'),
})

async function bodyOf(sent: {
  kind: Kind
  slug: string
  provider: string
  group?: string | undefined
  publisher?: string | undefined
  secret: string | undefined
}): Promise<Body> {
  const app = { slug: sent.slug, group: sent.group, meta_publisher: sent.publisher }
  const secret = sent.kind === 'oauth2' ? { client_secret: sent.secret, client_id: undefined } : {}
  return named(sent.kind, `${name}-x`, {
    app: { ...app, slug: `${name}-${sent.slug}` },
    provider: { name: `${name}-${sent.provider}`, ...secret },
  })
}

test('for random states and submissions, a plan changes nothing and its apply does exactly what was planned', {
  timeout: 300_000,
}, async () => {
  const seen = { applied: 0, refused: 0, updated: 0 }
  await fc.assert(
    fc.asyncProperty(submissions, async (sent) => {
      const body = await bodyOf(sent)
      const headers = { ...(sent.owner !== undefined && { 'gatewright-owner': sent.owner }) }
      const before = await objects(there.db)
      const planned = await there.admin.put(`${applyPath}?dry_run=true`, body, { headers })
      expect(await objects(there.db)).toEqual(before)
      const applied = await there.admin.put(applyPath, body, {
        headers: { ...headers, ...(planned.headers.etag !== undefined && { 'if-match': planned.headers.etag }) },
      })
      expect(applied.status).toBe(planned.status)
      if (planned.status !== 200 || planned.headers.etag === undefined) {
        seen.refused += 1
        return
      }
      expect(applied.json).toMatchObject({ applied: true })
      const { changes } = await runOf(planned)
      expect((await runOf(applied)).changes).toEqual(changes)
      seen.applied += 1
      if (changes.some(({ action }) => action === 'update')) seen.updated += 1
    }),
    { numRuns: Math.max(60, 15 * inject('rounds')) },
  )
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(2)
})
