import { describe, expect, test } from 'vitest'
import { type Asker, answered, applyPath, type SubmitOptions } from '../support/asker.ts'
import { counts, installation, name, named, renewName, versions } from '../support/kit.ts'

/** `Gatewright-Owner` and `Gatewright-Allow`: whose an application and its provider are. */

const there = await installation()
const deployer = ['oauth2', 'scim'].flatMap((kind) => [`add_${kind}provider`, `change_${kind}provider`])
const permissions = ['add_application', 'change_application', 'view_user', ...deployer]
const amira = await there.make.user({ permissions })
const bo = await there.make.user({ permissions })

const put = (by: Asker, options?: SubmitOptions) => by.submit('oauth2', name, options)

const today = () => new Date().toISOString().slice(0, 10)
const names = () => [`provider oauth2 "${name}"`, `application "${name}"`]

const held = () =>
  Promise.all([
    there.db.provider.findUniqueOrThrow({ where: { name } }),
    there.db.application.findUniqueOrThrow({ where: { slug: name } }),
  ]).then((rows) => rows.map(({ owner, createdBy }) => ({ owner, createdBy })))

/** Refused at once: nothing is recorded, and nothing is written. */
async function refused(by: Asker, options: SubmitOptions): Promise<string> {
  const before = [await counts(there.db), await versions(there.db)]
  const answer = await answered(409, put(by, options), { code: 'conflict' })
  expect([await counts(there.db), await versions(there.db)]).toEqual(before)
  return answer.detail
}

describe('an apply under an owner', () => {
  test('labels what it creates, and converges', async () => {
    expect((await put(amira, { owner: 'team-a' })).status).toBe(200)
    expect(await held()).toEqual(Array(2).fill({ owner: 'team-a', createdBy: amira.pk }))
    expect((await put(amira, { owner: 'team-a' })).logs).toEqual(names().map((what) => `${what} unchanged`))
    // The label counts, not the user: a team has several.
    expect((await put(bo, { owner: 'team-a', app: { group: 'New' } })).logs).toEqual([
      `${names()[0]} unchanged`,
      expect.stringContaining(`${names()[1]} updated: group `),
    ])
    expect(await held()).toEqual(Array(2).fill({ owner: 'team-a', createdBy: amira.pk }))
  })

  test('that finds an object of another owner is a 409 with owner, creator and date', async () => {
    await put(amira, { owner: 'team-a' })
    const made = `belongs to owner "team-a" (made by "${amira.username}" on ${today()}), and the request names owner "team-b". Send it as owner "team-a": \`owner: "team-a"\` in the file, or Gatewright-Owner. Gatewright-Allow: takeover takes it from that owner.`
    expect(await refused(bo, { owner: 'team-b' })).toBe(
      names()
        .map((what) => `${what} ${made}`)
        .join(' '),
    )
    // Its creator is no exception, and neither is a superuser.
    await refused(amira, { owner: 'team-b' })
    await refused(there.admin, { owner: 'team-b' })
  })

  test('that finds an object without an owner that another user made is a 409', async () => {
    await put(amira)
    const made = `has no owner, and was made by "${amira.username}" on ${today()}. Gatewright-Allow: takeover`
    const detail = await refused(bo, { owner: 'team-b' })
    for (const what of names()) expect(detail).toContain(`${what} ${made}`)
  })

  test('a slug that was claimed first does not go live with the secret and redirects of another', async () => {
    await put(bo)
    // The same values: it would be unchanged.
    await refused(amira, { owner: 'team-a' })
  })

  test('adopts an object without an owner that the same user made', async () => {
    await put(amira)
    expect((await put(amira, { owner: 'team-a' })).logs).toEqual(
      names().flatMap((what) => [`${what} unchanged`, `${what} had no owner: it belongs to owner "team-a" now`]),
    )
    expect(await held()).toEqual(Array(2).fill({ owner: 'team-a', createdBy: amira.pk }))
    const [row] = await there.db.auditRow.findMany({ orderBy: { pk: 'desc' }, take: 1 })
    expect(row?.changes).toMatchObject(Array(2).fill({ action: 'update', fields: ['owner'] }))
    expect((await put(amira, { owner: 'team-a' })).logs).toHaveLength(2)
  })

  test('an object of an earlier version has an unknown creator, and needs an acknowledgement', async () => {
    await put(amira)
    await there.db.provider.update({ where: { name }, data: { createdBy: null } })
    expect(await refused(amira, { owner: 'team-a' })).toContain(`made by an unknown user on ${today()}`)
  })

  test('a creator who is deleted is still named', async () => {
    const gone = await there.make.user({ superuser: true })
    await put(gone)
    await there.db.user.delete({ where: { pk: gone.pk } })
    expect(await refused(amira, { owner: 'team-a' })).toContain(`made by user ${gone.pk}, deleted since, on ${today()}`)
  })
})

describe('Gatewright-Allow: takeover', () => {
  test('makes an object of another owner the own, and keeps its creator', async () => {
    await put(amira, { owner: 'team-a' })
    const answer = await put(bo, { owner: 'team-b', allow: 'takeover', app: { group: 'New' } })
    const was = `belonged to owner "team-a" (made by "${amira.username}" on ${today()}): it belongs to owner "team-b" now`
    const [provider, app] = names()
    expect(answer.logs).toEqual([
      `${provider} unchanged`,
      `${provider} ${was}`,
      expect.stringContaining(`${app} updated: group `),
      `${app} ${was}`,
    ])
    expect(await held()).toEqual(Array(2).fill({ owner: 'team-b', createdBy: amira.pk }))
    await refused(amira, { owner: 'team-a' })
  })

  test('makes an object without an owner the own', async () => {
    await put(amira)
    expect((await put(bo, { owner: 'team-b', allow: ' grants , takeover ' })).status).toBe(200)
    expect(await held()).toEqual(Array(2).fill({ owner: 'team-b', createdBy: amira.pk }))
  })

  test('without an owner, releases the object', async () => {
    await put(amira, { owner: 'team-a' })
    expect((await put(bo, { allow: 'takeover' })).logs[1]).toMatch(/: it has no owner now$/)
    expect(await held()).toEqual(Array(2).fill({ owner: null, createdBy: amira.pk }))
  })

  test('is kept with the run, as the owner is', async () => {
    const { headers } = await put(amira, { owner: 'team-a', allow: 'takeover' })
    const run = await amira.get(headers['content-location'] ?? '')
    expect(run.json).toMatchObject({ owner: 'team-a', allowed: ['takeover'] })
  })
})

describe('an apply without an owner', () => {
  test('that finds an object with one is a 409', async () => {
    await put(amira, { owner: 'team-a' })
    const detail = await refused(amira, {})
    for (const what of names())
      expect(detail).toContain(
        `${what} belongs to owner "team-a" (made by "${amira.username}" on ${today()}), and the request names no owner.`,
      )
  })

  test('of an object without one works as before, and says when another user made it', async () => {
    await put(amira)
    expect(await held()).toEqual(Array(2).fill({ owner: null, createdBy: amira.pk }))
    const [provider, app] = names()
    expect((await put(amira, { app: { group: 'A' } })).logs).toEqual([
      `${provider} unchanged`,
      expect.stringContaining(`${app} updated: group `),
    ])
    expect((await put(bo, { app: { group: 'B' } })).logs).toEqual([
      `${provider} unchanged`,
      `${provider} was made by "${amira.username}" on ${today()}`,
      expect.stringContaining(`${app} updated: group `),
      `${app} was made by "${amira.username}" on ${today()}`,
    ])
  })

  test('creates beside objects of owners', async () => {
    await put(amira, { owner: 'team-a' })
    renewName()
    expect((await put(bo)).logs).toEqual(names().map((what) => expect.stringContaining(`${what} created`)))
  })
})

describe('what an owner is', () => {
  test.each([
    ['x', 'x'],
    ['x'.repeat(100), 'x'.repeat(100)],
    ['Team A / platform (EU)', 'team a / platform (eu)'],
    ['Équipe', 'équipe'],
  ])('%j is one', async (owner, kept) => {
    const bytes = Buffer.from(owner).toString('latin1')
    expect((await put(amira, { owner: bytes })).status).toBe(200)
    expect((await held())[0]?.owner).toBe(kept)
  })

  test.each([
    ['', 'Must have 1 to 100 characters.'],
    ['x'.repeat(101), 'Must be at most 100 characters.'],
    ['a, b', expect.stringContaining('no comma')],
  ])('%j is none: 400', async (owner, message) => {
    await answered(400, put(amira, { owner }), { code: 'invalid', 'Gatewright-Owner': [message] })
  })

  test('an unknown word of Gatewright-Allow and an unknown header are a 400, with all other errors', async () => {
    const body = await named('oauth2', name, { app: { nme: 'x' } })
    const headers = { 'gatewright-allow': 'grants, take-over', 'gatewright-ovner': 'team-a', 'if-none-match': 'x' }
    await answered(400, amira.put(applyPath, body, { headers }), {
      code: 'invalid',
      'If-None-Match': [expect.any(String)],
      'Gatewright-Allow': ['"take-over": Unknown word. Did you mean takeover? It takes takeover, grants, deletes.'],
      app: { nme: ['Unknown field. Did you mean name?'] },
      'gatewright-ovner': ['Unknown header. Did you mean gatewright-owner?'],
    })
  })
})

describe('the owner of a blueprint', () => {
  const document = (owner: string | undefined, slug: string) => ({
    version: 1,
    metadata: { name: 'owned' },
    ...(owner !== undefined && { owner }),
    entries: [{ model: 'service_core.application', identifiers: { slug }, attrs: { name: slug } }],
  })
  const send = (owner: string | undefined, asked: SubmitOptions = {}) =>
    there.admin.put('/api/v3/blueprints/', document(owner, name), asked)
  const owner = () => there.db.application.findUniqueOrThrow({ where: { slug: name } }).then((row) => row.owner)

  test('stands in the document, or in the header, or in both', async () => {
    expect((await send('team-a')).status).toBe(200)
    expect(await owner()).toBe('team-a')
    for (const answer of [await send(undefined, { owner: 'team-a' }), await send('team-a', { owner: 'team-a' })])
      expect(answer.logs).toEqual([`application "${name}" unchanged`])
    const yaml = `version: 1\nmetadata: { name: y }\nowner: team-b\nentries:\n  - { model: service_core.application, identifiers: { slug: ${name} } }\n`
    const headers = { 'content-type': 'application/yaml' }
    expect(await there.admin.put('/api/v3/blueprints/', yaml, { headers })).toMatchObject({ status: 409 })
  })

  test('that differs from the header is a 400', async () => {
    await answered(400, send('team-a', { owner: 'team-b' }), {
      'Gatewright-Owner': ['The document names the owner "team-a": leave one out.'],
    })
  })

  test.each(['', 'x'.repeat(101), 5])('of %j is a 400', async (wrong) => {
    expect(await send(wrong as string)).toMatchObject({ status: 400, json: { code: 'invalid' } })
  })

  test('protects against a delete, and against an entry that only creates', async () => {
    await send('team-a')
    const gone = (state: string) => ({
      ...document(undefined, name),
      entries: [{ model: 'service_core.application', state, identifiers: { slug: name } }],
    })
    for (const state of ['absent', 'created'])
      expect(await there.admin.put('/api/v3/blueprints/', gone(state))).toMatchObject({ status: 409 })
    expect((await there.admin.put('/api/v3/blueprints/', gone('absent'), { allow: 'takeover' })).logs).toEqual([
      expect.stringContaining(`application "${name}" deleted`),
      `application "${name}" belonged to owner "team-a" (made by "admin" on ${today()})`,
    ])
  })
})

describe('the owner of a submission', () => {
  test('is that of the request, and another in the header is a 400', async () => {
    const body = { ...(await named('oauth2', name)), owner: 'Team-A' }
    expect((await amira.put(applyPath, body)).status).toBe(200)
    expect(await held()).toEqual(Array(2).fill({ owner: 'team-a', createdBy: amira.pk }))
    expect((await amira.put(applyPath, body, { owner: 'team-a' })).status).toBe(200)
    const { errors } = await answered(400, amira.put(applyPath, body, { owner: 'team-b' }))
    expect(errors).toMatchObject([{ code: 'invalid_combination', header: 'Gatewright-Owner' }])
    await answered(400, amira.put(applyPath, { ...body, owner: 7 }), { owner: [expect.any(String)] })
  })

  test('in a set is that of its entries', async () => {
    const submissions = [{ ...(await named('oauth2', name)), owner: 'team-a' }]
    expect((await there.admin.put('/api/v3/blueprints/', { submissions }, { owner: 'team-b' })).status).toBe(200)
    expect(await held()).toMatchObject(Array(2).fill({ owner: 'team-a' }))
  })
})
