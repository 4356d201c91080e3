import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { aGroup, anApplication, answered, documentsPath, installation, named } from '../support/kit.ts'

/** A document that says two things of one row is a 400, also where only the database knows that it is one row. */

const group = 'service_core.group'

const on = await installation()

const otherValue = (entry: string) =>
  `${entry} names the same row, and has another value for this field: leave one of the two out.`

const { apply } = on.admin

/** A group that is there. */
async function made(attrs: object = {}): Promise<{ name: string; pk: string }> {
  const name = `twice-${randomUUID().slice(0, 8)}`
  expect(await apply([aGroup(name, attrs)])).toMatchObject({ status: 200 })
  const { pk } = await on.db.group.findFirstOrThrow({ where: { name }, select: { pk: true } })
  return { name, pk }
}

describe.each(['apply', 'plan'] as const)('%s of a document', (act) => {
  const send = on.admin[act]

  test('a row by its key, and by its name', async () => {
    const { name, pk } = await made()
    const answer = await send([
      { model: group, identifiers: { pk }, attrs: { is_superuser: false } },
      aGroup(name, { is_superuser: true }),
    ])
    expect(answer).toMatchObject({
      status: 400,
      json: { entries: { 1: { is_superuser: [otherValue('Entry 0 of the document')] } } },
      errors: [{ code: 'invalid_combination', pointer: '/entries/1/attrs/is_superuser' }],
    })
  })

  test('a reference by its name, and by the key of another row', async () => {
    const [one, other] = [await made(), await made()]
    const name = `twice-${randomUUID().slice(0, 8)}`
    const both = (parent: string) => [{ ...aGroup(name, { parent: one.name }), id: 'child' }, aGroup(name, { parent })]
    await answered(400, send(both(other.pk)), { entries: { 1: { parent: [otherValue('Entry "child"')] } } })
    expect(await send(both(one.pk))).toMatchObject({ status: 200 })
  })

  test('a row under two owners, by its name or by its key', async () => {
    const [slug, fresh] = [uuid7(), uuid7()]
    const under = (owner: string | null, identifiers: object, attrs = {}) => ({
      model: 'service_core.application',
      owner,
      identifiers,
      attrs,
    })
    expect(await apply([under(null, { slug }, { name: slug })])).toMatchObject({ status: 200 })
    const { pk } = await on.db.application.findFirstOrThrow({ where: { slug } })
    const answer = await send([
      under('team-a', { slug: fresh }, { name: fresh }),
      under(null, { slug: fresh }),
      under(null, { slug }),
      under('team-a', { pk }),
    ])
    expect(answer).toMatchObject({
      status: 400,
      json: {
        entries: {
          1: { owner: ['Entry 0 of the document names the same row for the owner "team-a": a row has one owner.'] },
          3: { owner: ['Entry 2 of the document names the same row without an owner: a row has one owner.'] },
        },
      },
      errors: [{ code: 'invalid_combination', pointer: '/entries/1/owner' }, { pointer: '/entries/3/owner' }],
    })
  })

  test('a new row in two spellings, and one that is present and, by its key, absent', async () => {
    const name = `twice-${randomUUID().slice(0, 8)}`
    const { name: there, pk } = await made()
    const answer = await send([
      aGroup(name),
      aGroup(name.toUpperCase()),
      aGroup(there),
      { model: group, state: 'absent', identifiers: { pk } },
    ])
    expect(answer).toMatchObject({
      status: 400,
      json: {
        entries: {
          1: { name: [`group "${name}" exists; names are compared without case.`] },
          3: ['Entry 2 of the document names the same row, and one of the two is absent: leave one of them out.'],
        },
      },
    })
    expect(await on.db.group.count({ where: { pk } })).toBe(1)
  })

  test('a new row, of which a later entry names less than is required', async () => {
    const slug = uuid7()
    const application = (attrs: object) => anApplication(slug, attrs)
    const more = application({ meta_description: 'more' })
    expect(await send([application({ group: 'x' }), more])).toMatchObject({
      status: 400,
      errors: [{ code: 'required', pointer: '/entries/0/attrs/name' }],
    })
    expect(await send([application({ name: slug }), more])).toMatchObject({ status: 200 })
  })

  test('two submissions of one application, in a list', async () => {
    const slug = `twice-${randomUUID().slice(0, 8)}`
    const body = await named('oauth2', slug)
    const other = { ...body, app: { ...body.app, meta_description: 'another' } }
    const answer = await on.admin.put(`${documentsPath}${act === 'plan' ? '?dry_run=true' : ''}`, [
      { ...body, app: { ...body.app, meta_description: 'one' } },
      other,
    ])
    expect(answer).toMatchObject({
      status: 400,
      json: { 1: { app: { meta_description: [otherValue('Entry "0.app"')] } } },
    })
  })

  test('a row that is renamed by its key, and a new one of the name before, are two rows', async () => {
    const { name, pk } = await made()
    const answer = await send([
      { model: group, identifiers: { pk }, attrs: { name: `${name}-new` } },
      aGroup(name, { attributes: { is: 'new' } }),
    ])
    expect(answer).toMatchObject({ status: 200 })
  })

  test('a row that goes by its key, and a new one of its name, are two rows', async () => {
    const { name, pk } = await made()
    await answered(
      200,
      send([{ model: group, state: 'absent', identifiers: { pk } }, aGroup(name, { attributes: { is: 'new' } })]),
    )
  })
})

test('two entries with one id, of which the second refers to it: a 400', async () => {
  const [name, slug] = [randomUUID(), 'one-id']
  const consent = (id: string) =>
    `- { model: service_core.userconsent, id: ${id}, identifiers: { user: admin, application: !KeyOf x } }`
  const entries = `- { model: service_core.application, id: x, identifiers: { slug: ${slug} }, attrs: { name: ${name} } }`
  const sent = `version: 1\nmetadata: { name: ids }\nentries:\n${entries}\n${consent('x')}\n`
  const headers = { 'content-type': 'application/yaml' }
  expect(await on.admin.put(documentsPath, sent, { headers })).toMatchObject({
    status: 400,
    errors: [{ code: 'duplicate_id', pointer: '/entries/1/id' }],
  })
})
