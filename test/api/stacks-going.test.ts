import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { answered, applied, aToken, aUser, type Entry, installation } from '../support/kit.ts'
import { application, fresh, readerOf, role } from './stack-cases.ts'

/** Rows of other stacks that go with a deleted row. */

const on = await installation()
const { apply, plan } = on.admin
const { namesIn } = readerOf(on)

/** A user of one stack whose token another stack has. */
async function made() {
  const [stack, other, username, identifier] = [fresh(), fresh(), fresh('user'), fresh('token')]
  const user = aUser(username, { name: 'U', path: 'users' })
  await applied(apply([user], { stack }))
  await applied(apply([aToken(identifier, { user: username })], { stack: other }))
  const rest = role(fresh('role'))
  return { stack, other, username, identifier, user, rest }
}
const lost = ({ identifier, username, other, stack }: Awaited<ReturnType<typeof made>>) =>
  `token "${identifier}", which goes with user "${username}", belongs to stack "${other}", and the request is of stack "${stack}"`

test('a user that is left over takes no token of another stack along, unless that is acknowledged', async () => {
  const there = await made()
  const { stack, other, username, identifier, rest } = there
  const refused = await answered(409, apply([rest], { stack, allow: 'deletes=1' }))
  expect(refused.detail).toContain(`${lost(there)}. Gatewright-Allow: takeover applies it all the same`)
  expect(await namesIn(other)).toEqual([identifier])
  const { logs } = await applied(apply([rest], { stack, allow: 'deletes=1,takeover' }))
  expect(logs).toContain(`token "${identifier}", which goes with user "${username}", left stack "${other}"`)
  expect(await on.db.token.count({ where: { identifier } })).toBe(0)
})

test('nor does a user that an entry deletes; a reviewed plan says what goes, and goes no further', async () => {
  const there = await made()
  const { stack, other, username, identifier, user } = there
  const gone: Entry = { ...user, state: 'absent', attrs: {} }
  expect((await answered(409, apply([gone], { stack }))).detail).toContain(lost(there))
  const planned = await answered(200, plan([gone], { stack }))
  const line = `token "${identifier}", which goes with user "${username}", would leave stack "${other}"`
  expect(planned.logs).toContain(line)
  const second = fresh('token')
  await applied(apply([aToken(identifier, { user: username }), aToken(second, { user: username })], { stack: other }))
  const late = await answered(412, apply([gone], { stack, ifMatch: planned.etag }))
  expect(late.detail).toContain('what other stacks lose changed after the plan')
  const { etag } = await answered(200, plan([gone], { stack }))
  await applied(apply([gone], { stack, ifMatch: etag }))
  expect(await on.db.token.count({ where: { identifier: { in: [identifier, second] } } })).toBe(0)
})

test('devices and consents go so, too; a token of the request that is bound takes none along', async () => {
  const { stack, username, user } = await made()
  const other = fresh()
  const slug = fresh('app')
  await applied(apply([user, application(slug)], { stack }))
  const { pk: userPk } = await on.db.user.findUniqueOrThrow({ where: { username } })
  const { pk: applicationPk } = await on.db.application.findUniqueOrThrow({ where: { slug } })
  const consent = await on.db.userConsent.create({ data: { userPk, applicationPk, permissions: 'openid' } })
  const device = await on.db.totpDevice.create({
    data: { userPk, name: 'phone', sealedKey: 'none', uuid: randomUUID() },
  })
  await on.db.stack.create({ data: { name: other } })
  const members = [
    { model: 'service_core.userconsent', key: String(consent.pk) },
    { model: 'service_stages_totp.totpdevice', key: String(device.pk) },
  ]
  await on.db.stackMember.createMany({ data: members.map((each) => ({ ...each, stackName: other })) })
  const gone = (entry: Entry): Entry => ({ ...entry, state: 'absent', attrs: {} })
  const ofApplication = await answered(409, apply([user, gone(application(slug))], { stack }))
  expect(ofApplication.detail).toMatch(/^user consent ".*", which goes with application ".*", belongs to stack/)
  const ofUser = await answered(409, apply([gone(user), application(slug)], { stack }))
  expect(ofUser.detail).toContain(
    `TOTP device "phone", which goes with user "${username}", belongs to stack "${other}"`,
  )
  const admin = await on.db.user.findUniqueOrThrow({ where: { username: 'admin' } })
  const rights = ['change_application', 'view_application', 'delete_application', 'view_userconsent']
  const bound = on.as(await on.make.token(admin.pk, { ceiling: [...rights, `stack:${stack}`] }))
  const refused = await answered(403, bound.apply([gone(application(slug))], { stack, allow: 'takeover' }))
  expect(refused.detail).toContain(`documents of stack "${stack}" only`)
})

test('a user that is left over stays while an entry names what goes with it', async () => {
  const [stack, username, identifier] = [fresh(), fresh('user'), fresh('token')]
  const token = aToken(identifier, { user: username })
  await applied(apply([aUser(username, { name: 'U', path: 'users' }), token], { stack }))
  const refused = await answered(400, apply([token], { stack, allow: 'deletes=1' }))
  expect(refused.text).toContain(`is the user of token \\"${identifier}\\": change or delete that first`)
  expect(await on.db.token.count({ where: { identifier } })).toBe(1)
  await applied(apply([role(fresh('role'))], { stack, allow: 'deletes=2' }))
  expect(await on.db.user.count({ where: { username } })).toBe(0)
})

test('a user that is left over stays while its stack lets a token of it stay', async () => {
  const [stack, username, identifier] = [fresh(), fresh('user'), fresh('token')]
  const user = aUser(username, { name: 'U', path: 'users' })
  const token: Entry = { ...aToken(identifier, { user: username }), retain: true }
  await applied(apply([user, token], { stack }))
  const rest = role(fresh('role'))
  const refused = await answered(400, apply([rest], { stack, allow: 'deletes=1' }))
  expect(refused.text).toContain(`is the user of token \\"${identifier}\\": change or delete that first`)
  expect(await on.db.token.count({ where: { identifier } })).toBe(1)
  const { logs } = await applied(apply([rest, user], { stack }))
  expect(logs.join()).toContain(`token "${identifier}" stays without stack`)
})
