import { beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type Asker, answered, installation, type Made, name, until } from '../support/kit.ts'

/** A stored document is applied with what its submitter and its caller may do, and it is no more than what its run did. */

let mallory: Made
let operator: Made
const rights = ['add_group', 'change_group', 'delete_group', 'view_group', 'view_run']
const there = await installation()
beforeEach(async () => {
  mallory = await there.make.user({ permissions: rights })
  operator = await there.make.user({ superuser: true })
})

const send = (as: Asker, entries: string, headers: Record<string, string> = {}) =>
  as.send({
    method: 'PUT',
    url: '/api/v3/blueprints/',
    headers: { 'content-type': 'application/yaml', ...headers },
    payload: `version: 1\nmetadata: { name: ${name} }\nentries:\n${entries}`,
  })
const pathOf = ({ headers }: Answer) => headers['content-location'] ?? headers.location ?? ''
const again = (as: Asker, run: string, query = '', headers: Record<string, string> = {}) =>
  as.send({ method: 'POST', url: `${run}apply/${query}`, headers })
/** Plans the document of a run, and applies that plan. @returns the first refusal, or the apply */
async function reviewed(as: Asker, run: string, headers: Record<string, string> = {}): Promise<Answer> {
  const plan = await again(as, run, '?dry_run=true', headers)
  return plan.headers.etag === undefined ? plan : again(as, run, '', { ...headers, 'if-match': plan.headers.etag })
}
const group = (called: string, more = '') =>
  `- { model: service_core.group, identifiers: { name: "${called}" }${more === '' ? '' : `, ${more}`} }\n`
const groups = async () =>
  (await there.db.group.findMany({ where: { name: { startsWith: name } }, orderBy: { name: 'asc' } })).map(
    ({ name: each }) => each.slice(name.length),
  )
const isSuperuser = async ({ token }: Made) =>
  Object((await there.as(token).get('/api/v3/core/users/me/')).json).user.is_superuser
/** Rights for the one who submits, once the trap that looks for it is there. */
const trap = (then: string) => `conditions: [!Find [service_core.group, [name, "${name}-trap"]]], ${then}`

describe('an entry that was skipped is no part of the document', () => {
  const grant = () => group(`${name}-super`, trap(`attrs: { is_superuser: true, users: [${mallory.username}] }`))

  test.each(['by the operator', 'by the submitter with more rights now'])('%s', async (who) => {
    const run = pathOf(await send(mallory, group(`${name}-plain`) + grant()))
    await send(operator, group(`${name}-trap`))
    if (who === 'by the submitter with more rights now') {
      await there.make.group({ superuser: true, users: [mallory.pk] })
      expect((await again(mallory, run)).json).toMatchObject({
        applied: true,
        logs: expect.arrayContaining([
          expect.stringMatching(/^entry 1 .* skipped: the former run did not execute it$/),
        ]),
      })
    } else {
      expect((await again(operator, run)).status).toBe(409)
      expect((await reviewed(operator, run)).json).toMatchObject({ applied: true })
      expect(await isSuperuser(mallory)).toBe(false)
    }
    expect(await groups()).toEqual(['-plain', '-trap'])
  })

  test('nor after a plan of it, nor under a request ID of another', async () => {
    const id = { 'x-request-id': `job-${name}` }
    await send(operator, group(`${name}-theirs`), id)
    const run = pathOf(await send(mallory, group(`${name}-plain`) + grant(), id))
    const plan = pathOf(await again(operator, run, '?dry_run=true', id))
    await send(operator, group(`${name}-trap`))
    for (const each of [run, plan]) expect((await reviewed(operator, each, id)).status).toBe(200)
    expect(await groups()).toEqual(['-plain', '-theirs', '-trap'])
    expect(await isSuperuser(mallory)).toBe(false)
  })

  test('of a run that was refused, none with a condition', async () => {
    const refused = await send(mallory, group(`${name}-no`, 'attrs: { parent: no such group }') + grant(), {
      prefer: 'respond-async',
    })
    expect(refused.status).toBe(400)
    const late = await send(mallory, group(`${name}-gone`, 'state: must_created') + grant())
    const run = await there.db.run.update({
      where: { id: pathOf(late).split('/').at(-2) ?? '' },
      data: { applied: false, reason: 'conflict' },
    })
    await there.db.group.deleteMany({ where: { name: `${name}-gone` } })
    await send(operator, group(`${name}-trap`))
    expect((await reviewed(operator, pathOf(late))).json).toMatchObject({ applied: true })
    expect(run.applied).toBe(false)
    expect(await groups()).toEqual(['-gone', '-trap'])
  })

  test('an entry that left its row as it was makes none later', async () => {
    await send(operator, group(`${name}-once`))
    const child = group(`${name}-child`, 'attrs: { parent: !KeyOf once }')
    const text = group(`${name}-once`, 'id: once, state: created, attrs: { is_superuser: false }') + child
    const run = pathOf(await send(operator, text))
    expect((await again(operator, run)).json).toMatchObject({ applied: true })
    await there.db.group.deleteMany({ where: { name: { startsWith: name } } })
    expect((await again(operator, run)).status).toBe(400)
    expect(await groups()).toEqual([])
  })
})

describe('what was executed takes what both may do', () => {
  test('an entry that was unchanged, and would give rights now', async () => {
    await there.make.group({ name: `${name}-admins`, superuser: true, users: [mallory.pk] })
    const text = group(`${name}-admins`, `attrs: { users: [${mallory.username}] }`)
    const run = pathOf(await send(mallory, text))
    await there.db.membership.deleteMany({ where: { group: { name: `${name}-admins` } } })
    const answer = await answered(403, reviewed(operator, run))
    expect(answer.text).toContain('takes what both its submitter and you may do')
    expect(await isSuperuser(mallory)).toBe(false)
    expect((await send(operator, text)).json).toMatchObject({ applied: true })
  })

  test('a plan of the operator is of the same submitter, for the operator and for others', async () => {
    const pipeline = await there.make.user({ permissions: [...rights, 'roll_back_run', 'add_user_to_group'] })
    await there.make.group({ name: `${name}-admins`, superuser: true })
    const run = pathOf(await send(mallory, group(`${name}-plain`)))
    const plan = pathOf(await again(operator, run, '?dry_run=true'))
    const { options } = await there.db.run.findUniqueOrThrow({ where: { id: plan.split('/').at(-2) ?? '' } })
    expect(options).toMatchObject({ authors: [{ pk: mallory.pk }] })
    expect((await again(operator, plan)).status).toBe(409)
    await there.db.membership.deleteMany({ where: { userPk: mallory.pk } })
    for (const as of [operator, pipeline]) expect((await reviewed(as, plan)).status).toBe(403)
  })

  test('with the rights that the submitter has when the worker applies it', async () => {
    const run = pathOf(await send(mallory, group(`${name}-late`, 'attrs: { attributes: { at: 1 } }')))
    await send(operator, group(`${name}-late`, 'attrs: { attributes: { at: 2 } }'))
    const plan = await again(operator, run, '?dry_run=true')
    const release = there.hold()
    const headers = { 'if-match': plan.headers.etag ?? '', prefer: 'respond-async' }
    const waiting = await answered(202, again(operator, run, '', headers))
    await there.db.membership.deleteMany({ where: { userPk: mallory.pk } })
    release()
    const ended = async () => Object((await there.admin.get(pathOf(waiting))).json)
    await until('the run to end', async () => (await ended()).state === 'done')
    expect(await ended()).toMatchObject({ applied: false, reason: 'permission_denied' })
  })

  test("what is the caller's own is not the submitter's", async () => {
    const identifier = `${name}-token`
    await there.make.token(operator.pk, { identifier })
    const text = `- { model: service_core.token, state: absent, identifiers: { identifier: ${identifier} } }\n`
    await answered(403, send(mallory, text))
    const run = pathOf(await send(mallory, group(`${name}-plain`)))
    const own = pathOf(
      await send(
        operator,
        `- { model: service_core.token, identifiers: { identifier: ${identifier} }, attrs: { description: kept } }\n`,
      ),
    )
    // The run looks as if the document of the stranger had been taken.
    const id = own.split('/').at(-2) ?? ''
    await there.db.run.update({ where: { id }, data: { submitterPk: mallory.pk } })
    expect((await reviewed(operator, own)).status).toBe(403)
    expect((await reviewed(operator, run)).status).toBe(200)
  })

  test('the ceiling of the token that submitted it holds for all later applies', async () => {
    const weak = there.as(await there.make.token(operator.pk, { ceiling: ['add_group', 'change_group'] }))
    const run = pathOf(await send(weak, group(`${name}-weak`)))
    await there.db.group.deleteMany({ where: { name: `${name}-weak` } })
    expect((await again(operator, run)).json).toMatchObject({ applied: true })
    const { id } = await there.db.run.findFirstOrThrow({
      where: { title: { contains: name } },
      orderBy: { createdAt: 'asc' },
    })
    const { options } = await there.db.run.findUniqueOrThrow({ where: { id } })
    await there.db.run.update({ where: { id }, data: { options: { ...Object(options), ceiling: ['view_group'] } } })
    expect((await again(operator, run)).status).toBe(403)
  })
})

describe('is refused, with what to do instead', () => {
  test.each([
    ['a deactivated submitter', () => there.db.user.update({ where: { pk: mallory.pk }, data: { isActive: false } })],
    ['a deleted submitter', () => there.db.user.delete({ where: { pk: mallory.pk } })],
  ] as const)('%s', async (_, change) => {
    const run = pathOf(await send(mallory, group(`${name}-plain`)))
    await change()
    for (const query of ['', '?dry_run=true'])
      await answered(409, again(operator, run, query), {
        detail: expect.stringMatching(/gone or no longer active.* send the document yourself\.$/),
      })
    expect((await send(operator, group(`${name}-plain`))).json).toMatchObject({ applied: true })
  })

  test('one of several submitters', async () => {
    const run = pathOf(await send(mallory, group(`${name}-plain`)))
    const between = await there.make.user({ superuser: true })
    const plan = pathOf(await again(between, run, '?dry_run=true'))
    expect((await reviewed(operator, plan)).status).toBe(200)
    await there.db.user.update({ where: { pk: between.pk }, data: { isActive: false } })
    expect((await reviewed(operator, plan)).status).toBe(409)
    expect((await reviewed(operator, run)).status).toBe(200)
  })
})
