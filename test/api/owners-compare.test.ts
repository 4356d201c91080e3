import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { migrationNames, migrationScript } from '../../src/db/migrations.ts'
import { aGroup, anApplication, aRole, aUser } from '../support/entries.ts'
import { type AskOptions, answered, applyPath, documentsPath, installation, named } from '../support/kit.ts'

/** Owners compare as names do, and texts that pages and logs show have no characters that are not shown. */

const there = await installation()
const fresh = () => `o-${randomUUID().slice(0, 8)}`
const header = (owner: string) => ({ owner: Buffer.from(owner).toString('latin1') })

describe('an owner', () => {
  test('in other letters, width or blanks is the same one', async () => {
    const name = fresh()
    const body = await named('scim', name)
    const ours = `Équipe ${name}`
    const same = [ours.toUpperCase(), ours.replace(' ', '   '), ours.replace('o', 'ｏ')]
    for (const owner of [ours, ...same])
      expect(await there.admin.put(applyPath, body, header(owner))).toMatchObject({ status: 200 })
    expect(await there.admin.put(applyPath, body, header(`${ours}x`))).toMatchObject({ status: 409 })
    for (const owner of [ours, ...same])
      for (const list of ['core/applications', 'providers/all', 'blueprints/runs']) {
        const { json } = await there.admin.get(`/api/v3/${list}/?owner=${encodeURIComponent(owner)}`)
        expect([list, json]).toEqual([
          list,
          expect.objectContaining({ results: expect.arrayContaining([expect.anything()]) }),
        ])
      }
  })

  test('of a role, a document, an entry and prune is compared so, too', async () => {
    const name = fresh()
    const put = (body: object, options: AskOptions = {}) =>
      there.admin.put(documentsPath, { version: 1, ...body }, options)
    const role = (owners: string[]) => ({
      entries: [aRole(name, { permissions: ['view_application'], owners })],
    })
    expect(await put(role([`Team-${name}`]))).toMatchObject({ status: 200 })
    await answered(200, put(role([`tEAM-${name}`])), { logs: [`role "${name}" unchanged`] })
    expect(await put(role([`Team-${name}`, `team-${name}`]))).toMatchObject({ status: 400 })
    const entry = (owner: string) => ({
      ...{ ...anApplication(name, { name }), owner },
    })
    expect(await put({ entries: [entry(`A-${name}`)] })).toMatchObject({ status: 200 })
    const again = await put({ owner: `a-${name.toUpperCase()}`, entries: [entry(`a-${name}`)] }, header(`A-${name}`))
    expect(again, again.text).toMatchObject({ status: 200, json: { logs: [`application "${name}" unchanged`] } })
    const pruned = { owner: `A-${name}`, prune: [`A-${name.toUpperCase()}`] }
    expect(await put({ ...pruned, entries: [entry(`A-${name}`)] })).toMatchObject({ status: 200 })
    const none = { ...pruned, prune: [`a-${name}`], entries: [] }
    expect(await put(none, { allow: 'deletes=1' })).toMatchObject({ status: 200 })
    expect(await there.db.application.count({ where: { slug: name } })).toBe(0)
  })

  test('that an earlier version stored is folded by a migration, with the rights of roles and tokens', async () => {
    const name = fresh()
    const role = await there.make.role(['view_application'], [`Team ${name}`, 'plain'])
    const { pk } = await there.make.user({})
    await there.make.token(pk, { identifier: name, ceiling: [`view_application@Team ${name}`, 'view_user'] })
    await there.db.token.update({ where: { identifier: name }, data: { owners: [`Team ${name}`] } })
    const names = (await migrationNames()).filter((each) => each.endsWith('_owners_compare_as_names'))
    expect(names).toHaveLength(1)
    // A later migration dropped this table.
    await there.db.$executeRawUnsafe('CREATE TABLE run_objects (owner text)')
    for (const each of names) await there.db.$executeRawUnsafe(await migrationScript(each))
    await there.db.$executeRawUnsafe('DROP TABLE run_objects')
    const found = await there.db.role.findUniqueOrThrow({ where: { pk: role.pk } })
    expect(found.owners.toSorted()).toEqual(['plain', `team ${name}`])
    expect(found.rights).toContain(`view_application@team ${name}`)
    const token = await there.db.token.findUniqueOrThrow({ where: { identifier: name } })
    expect([token.owners, token.ceiling]).toEqual([[`team ${name}`], [`view_application@team ${name}`, 'view_user']])
  })

  test.each(['a\u202eb', 'a，b', 'a\u0007b', ''])('%j is refused', async (owner) => {
    const entries = [aGroup(fresh())]
    expect(await there.admin.put(documentsPath, { version: 1, owner, entries })).toMatchObject({ status: 400 })
  })
})

describe('a text that is shown has no control or format characters', () => {
  const reversed = 'a\u202egpj.exe'
  test.each([
    ['the title of a run', { metadata: { name: reversed } }],
    ['the group of an application', {}, { attrs: { name: 'x', group: reversed } }],
  ])('%s', async (_, head: object, entry: object = {}) => {
    const body = {
      version: 1,
      ...head,
      entries: [{ model: 'service_core.application', identifiers: { slug: fresh() }, attrs: { name: 'x' }, ...entry }],
    }
    expect((await answered(400, there.admin.put(documentsPath, body))).text).toEqual(
      expect.stringContaining('May not hold control or format characters.'),
    )
  })

  test.each([
    ['the id of an entry', {}, { id: reversed }, '/entries/0/id'],
    ['the former name of a row', {}, { was: reversed }, '/entries/0/was'],
    ['a label', { metadata: { labels: { purpose: reversed } } }, {}, '/metadata/labels/purpose'],
    ['the name of a label', { metadata: { labels: { 'a\u0007': true } } }, {}, '/metadata/labels/a\u0007'],
  ])('%s', async (_, head: object, more: object, pointer) => {
    const entry = { model: 'service_core.group', identifiers: { name: fresh() }, ...more }
    const answer = await there.admin.put(documentsPath, { version: 1, ...head, entries: [entry] })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('May not hold control or format')])
    expect(answer.text).toContain(JSON.stringify(pointer).slice(1, -1))
    const harmless = { ...entry, id: 'größe 👍', was: undefined }
    const labels = { purpose: 'عربي 日本', count: 3, lines: 'one\n\ttwo' }
    const taken = { version: 1, metadata: { name: fresh(), labels }, entries: [harmless] }
    expect(await there.admin.put(documentsPath, taken)).toMatchObject({ status: 200 })
  })

  test('a description keeps its lines and joined letters, and nothing else that is not shown', async () => {
    const slug = fresh()
    const put = (meta_description: string) =>
      there.admin.put(documentsPath, {
        version: 1,
        entries: [anApplication(slug, { name: 'x', meta_description })],
      })
    for (const text of ['one\n\ttwo\r\nthree', 'می\u200cخواهم 👩\u200d💻'])
      expect((await put(text)).json, text).toMatchObject({ applied: true })
    for (const text of [reversed, 'a\u0007', 'a\rb', 'a\u001b[31m', 'a\u2066b'])
      expect([(await put(text)).status, (await put(text)).text]).toEqual([
        400,
        expect.stringContaining('May not hold control characters, or those that change the direction of a text.'),
      ])
  })

  test('the folder of a user', async () => {
    const put = (path: string) =>
      there.admin.put(documentsPath, {
        version: 1,
        entries: [aUser(fresh(), { path })],
      })
    expect((await put('users/größe/日本')).json).toMatchObject({ applied: true })
    expect((await put(`users/${reversed}`)).status).toBe(400)
  })

  test('the message of a run', async () => {
    const body = { version: 1, entries: [aGroup(fresh())] }
    const message = (text: string) => ({ headers: { 'gatewright-message': Buffer.from(text).toString('latin1') } })
    expect(await there.admin.put(documentsPath, body, message(reversed))).toMatchObject({ status: 400 })
    expect(await there.admin.put(documentsPath, body, message('wörter 👍 عربي'))).toMatchObject({ status: 200 })
  })
})
