import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { anIssuer, audience, exchangePath, exchangeStand, type Rule, ruleFor } from '../api/exchange-stand.ts'
import { held } from '../runs/stand.ts'
import {
  type Answer,
  type Asker,
  aGroup,
  anApplication,
  answered,
  applied,
  aToken,
  dashboardOf,
  installation,
  type Made,
  rows,
  sql,
  startIssuer,
  textOf,
  until,
} from '../support/kit.ts'

/** Who may trust an issuer, what its jobs get, and how long. */

const issuer = await startIssuer()
const second = await startIssuer()
const on = await installation({ privateIssuers: [issuer.url, second.url], waits: { everyMs: 50 } })
const { db, make } = on
const { trust, job, exchange, post, sign, fieldsOf, attrsOf } = exchangeStand(on, issuer)
const onSecond = exchangeStand(on, second)

const issuerRights = ['add_trustedissuer', 'change_trustedissuer', 'delete_trustedissuer', 'view_trustedissuer']
/** A user who may write trusted issuers, and has these rights. */
const maker = (...permissions: string[]) => make.user({ permissions: [...issuerRights, ...permissions] })
const fresh = () => `issuer-${randomUUID()}`
const write = (by: Asker, name: string, attrs: object) => by.apply([anIssuer(name, attrs)])
const remove = (by: Asker, name: string) =>
  by.apply([{ model: 'service_rbac.trustedissuer', state: 'absent', identifiers: { name } }])

async function denied(asked: Promise<Answer>, why: string): Promise<void> {
  const { detail } = await answered(403, asked)
  expect(detail).toContain(why)
}
const permissionsOf = async (who: Asker, headers = {}) => {
  const { json } = await answered(200, who.get('/api/v3/core/users/me/', { headers }))
  return (json as { user: { system_permissions: string[] } }).user.system_permissions
}
const grant = async ({ pk: userPk }: Made, permissions: string[], superuser = false) => {
  const { pk } = await make.group({ superuser, roles: [(await make.role(permissions)).pk] })
  await db.membership.create({ data: { userPk, groupPk: pk } })
  return pk
}

let user: Made
beforeEach(async () => {
  user = await make.user({ permissions: ['view_application', 'add_application'] })
})

/** Why a caller lacks what a rule gives. @param right `the permission x` */
const lacks = (right: string) => `the user of one of its rules has ${right}, and the caller has not`
const lacking = (permission: string) => lacks(`the permission ${permission}`)

describe('who writes an issuer has all that its rules give', () => {
  beforeEach(async () => void (await db.trustedIssuer.deleteMany()))

  test('to make it', async () => {
    const name = fresh()
    await denied(
      write(await maker('view_application'), name, attrsOf([ruleFor(user.username)])),
      lacking('add_application'),
    )
    const none = await make.user({ permissions: ['view_application', 'add_application'] })
    await denied(
      write(none, name, attrsOf([ruleFor(user.username)])),
      'the permission add_trustedissuer, change_trustedissuer or delete_trustedissuer is missing',
    )
    await applied(write(await maker('view_application', 'add_application'), name, attrsOf([ruleFor(user.username)])))
  })

  test('of each rule, of one that is bound to owners, too', async () => {
    const strong = await make.user({ permissions: ['view_group'] })
    const by = await maker('view_application', 'add_application')
    const rules = [ruleFor(user.username), ruleFor(strong.username, { name: 'other', owners: ['team-a'] })]
    await denied(write(by, fresh(), attrsOf(rules)), lacking('view_group'))
  })

  test('of a superuser: only superusers', async () => {
    const root = await make.user({ superuser: true })
    const every = await make.user({ groups: [], permissions: [...issuerRights] })
    const why = lacks('superuser rights')
    await denied(write(every, fresh(), attrsOf([ruleFor(root.username, { owners: ['team-a'] })])), why)
    const name = fresh()
    await applied(write(on.admin, name, attrsOf([ruleFor(root.username)])))
    await denied(write(every, name, { audience: 'mine' }), why)
    await denied(remove(every, name), why)
  })

  test('to change any part of it, before and afterwards', async () => {
    const name = fresh()
    const by = await maker('view_group')
    await applied(write(on.admin, name, attrsOf([ruleFor(user.username)])))
    const weak = await make.user({ permissions: ['view_group'] })
    const jwks = await issuer.jwks()
    for (const attrs of [
      { audience: 'mine' },
      { issuer: 'https://mine.example' },
      { jwks },
      { algorithms: ['ES256'] },
      { clock_skew: 300 },
      { rules: [] },
      { rules: [ruleFor(weak.username)] },
      { rules: [ruleFor(user.username, { claims: { repository: 'mine/*' } })] },
      { rules: [ruleFor(user.username, { owners: ['team-a'] })] },
      { rules: [ruleFor(user.username, { name: 'other' })] },
    ])
      await denied(write(by, name, attrs), lacking('add_application'))
    await denied(remove(by, name), lacking('add_application'))
    // The other way round: it holds what was there, and not what it adds.
    const holder = await maker('view_application', 'add_application')
    await denied(write(holder, name, { rules: [ruleFor(weak.username)] }), lacking('view_group'))
    await applied(write(holder, name, { audience: 'theirs' }))
    await applied(remove(holder, name))
  })

  test('to rename it: the first name wins', async () => {
    const name = fresh()
    await applied(write(on.admin, name, attrsOf([ruleFor(user.username)])))
    const by = await maker('view_group')
    const entry = { ...anIssuer(`a-${name}`), was: name, state: 'present' }
    await denied(by.apply([entry]), lacking('add_application'))
    await applied((await maker('view_application', 'add_application')).apply([entry]))
  })

  test('no other row takes its jobs: each URL has one', async () => {
    const name = fresh()
    await applied(write(on.admin, name, attrsOf([ruleFor(user.username)])))
    const by = await maker('view_application', 'add_application')
    const mine = attrsOf([ruleFor(by.username)])
    for (const asked of [() => write(by, '0-mine', mine), () => write(on.admin, '0-mine', mine)]) {
      const { text } = await answered(400, asked())
      expect(text).toContain(`is taken by trusted issuer \\"${name}\\"`)
    }
    await applied(write(by, '0-mine', { ...mine, issuer: 'https://mine.example' }))
    await answered(400, write(by, '0-mine', { issuer: issuer.url }))
  })

  test('what stays as it is needs nothing', async () => {
    const name = fresh()
    await applied(write(on.admin, name, attrsOf([ruleFor(user.username)])))
    const before = await db.trustedIssuer.findUniqueOrThrow({ where: { name } })
    await applied(write(await maker(), name, attrsOf([ruleFor(user.username)])))
    expect(await db.trustedIssuer.findUniqueOrThrow({ where: { name } })).toEqual(before)
  })

  test('a user who is not there has no rights', async () => {
    await applied(write(await maker(), fresh(), attrsOf([ruleFor(`later-${randomUUID()}`)])))
  })

  test('while impersonating: what both users hold', async () => {
    const strong = await maker('view_application', 'add_application')
    const support = await make.user({ permissions: ['impersonate'] })
    const headers = { 'impersonate-user': strong.username }
    const entries = [anIssuer(fresh(), attrsOf([ruleFor(user.username)]))]
    await denied(support.apply(entries, { headers }), lacking('add_application'))
  })
})

describe('the ceiling', () => {
  test('rights that the user gets later are not given', async () => {
    const by = await maker('view_application', 'add_application', 'view_flow')
    await trust([ruleFor(user.username)], { by })
    const before = await job()
    await grant(user, ['view_group', 'view_flow'])
    for (const each of [before, await job()])
      expect(await permissionsOf(each)).toEqual(['add_application', 'view_application', 'view_flow'])
    await grant(user, [], true)
    for (const each of [before, await job()]) {
      expect(await permissionsOf(each)).not.toContain('view_group')
      await answered(403, each.get('/api/v3/core/groups/'))
    }
  })

  test('of a superuser there is none: all rights of the user, later ones too', async () => {
    await trust([ruleFor(user.username)])
    const it = await job()
    await grant(user, ['view_group'])
    expect(await permissionsOf(it)).toEqual(['add_application', 'view_application', 'view_group'])
    await grant(user, [], true)
    await answered(200, it.get('/api/v3/core/users/'))
  })

  test('a token with a ceiling is that of its maker: owners and stacks, too', async () => {
    const root = await make.user({ superuser: true })
    const right = ['add_application', 'view_application']
    const all = [...issuerRights, ...right]
    const tied = on.as(await make.token(root.pk, { ceiling: [...all, 'stack:one'] }))
    const name = fresh()
    await db.trustedIssuer.deleteMany()
    await denied(tied.apply([anIssuer(name, attrsOf([ruleFor(user.username)]))]), 'stack "one"')
    await applied(
      tied.apply([anIssuer(name, attrsOf([ruleFor(user.username, { stacks: ['two'] })]))], { stack: 'one' }),
    )
    expect((await exchange()).status).toBe(200)
    const wide = await job()
    await denied(wide.apply([anApplication(`app-${randomUUID()}`, { name: 'App' })]), 'may write no document')
    for (const stack of ['one', 'two'])
      await denied(wide.apply([anApplication(`app-${randomUUID()}`, { name: 'App' })], { stack }), 'no document')
    const bound = on.as(
      await make.token(root.pk, { ceiling: [...issuerRights, ...right.map((each) => `${each}@team-a`)] }),
    )
    await denied(bound.apply([anIssuer(fresh(), attrsOf([ruleFor(user.username)]))]), 'has the permission')
  })

  test('a weaker user who confirms the rules does not widen them, and a stronger one does', async () => {
    const by = await maker('view_application', 'add_application')
    const name = await trust([ruleFor(user.username)], { by })
    await grant(user, ['view_group'])
    expect(await permissionsOf(await job())).toEqual(['add_application', 'view_application'])
    await denied(write(by, name, { clock_skew: 61 }), 'view_group')
    await applied(write(on.admin, name, { clock_skew: 61 }))
    expect(await permissionsOf(await job())).toEqual(['add_application', 'view_application'])
    await applied(write(on.admin, name, attrsOf([ruleFor(user.username)], { clock_skew: 62 })))
    expect(await permissionsOf(await job())).toEqual(['add_application', 'view_application', 'view_group'])
  })

  test('keys that a weaker user left sign for no right that this user had not', async () => {
    const [own, name, member] = [await startIssuer(), fresh(), await make.user({ permissions: ['view_group'] })]
    await db.trustedIssuer.deleteMany()
    const jwks = {
      keys: [...(await issuer.jwks()).keys, ...(await own.jwks()).keys.map((key) => ({ ...key, kid: 'own' }))],
    }
    await applied(write(await maker('view_application'), name, attrsOf([], { jwks })))
    await applied(write(on.admin, name, attrsOf([ruleFor(member.username)])))
    expect(await permissionsOf(await job())).toEqual([])
    await applied(write(on.admin, name, attrsOf([ruleFor(member.username)], { jwks: null })))
    expect(await permissionsOf(await job())).toEqual(['view_group'])
  })

  test.each(['changed', 'deleted'])(
    'a roll back brings back no keys that a weaker user left: %s meanwhile',
    async (end) => {
      const [name, member] = [fresh(), await make.user({ permissions: ['view_group'] })]
      await db.trustedIssuer.deleteMany()
      await applied(write(await maker(), name, attrsOf([], { jwks: await second.jwks() })))
      const run = await applied(write(on.admin, name, attrsOf([ruleFor(member.username)])))
      await applied(
        end === 'deleted' ? remove(on.admin, name) : write(on.admin, name, attrsOf([], { jwks: await issuer.jwks() })),
      )
      const back = await answered(200, on.admin.post(`${run.run}apply/`))
      const { not_put_back: left } = await on.admin.runOf(back)
      expect(left).toContain(`trusted issuer "${name}": jwks`)
      expect((await exchangeStand(on, { ...second, url: issuer.url }).exchange({ iss: issuer.url })).status).toBe(401)
      expect(await permissionsOf(await job())).toEqual(['view_group'])
    },
  )

  test('rules for an issuer that others wrote carry what all of these writers had', async () => {
    const [one, other, name] = [await maker('view_application'), await maker('view_application', 'view_flow'), fresh()]
    await db.trustedIssuer.deleteMany()
    await applied(write(one, name, attrsOf([])))
    const rule = ruleFor(user.username, { name: 'added' })
    await grant(user, ['view_flow'])
    await db.membership.deleteMany({ where: { userPk: user.pk } })
    await applied(write(other, name, { rules: [rule] }))
    await grant(user, ['view_application', 'view_flow'])
    expect(await permissionsOf(await job())).toEqual(['view_application'])
  })
})

describe('a rule', () => {
  const application = () => [anApplication(`app-${randomUUID()}`, { name: 'App' })]

  test('that is bound to owners applies for them alone', async () => {
    await trust([ruleFor(user.username, { owners: ['team-a'] })])
    const it = await job()
    await applied(it.apply(application(), { owner: 'team-a' }))
    await denied(it.apply(application(), { owner: 'team-b' }), 'for rows of owner "team-a" only')
    await denied(it.apply(application()), 'for rows of owner "team-a" only')
    expect(await permissionsOf(it)).toEqual(['add_application@team-a', 'view_application@team-a'])
    const { json } = await answered(200, it.get(exchangePath))
    expect(json).toMatchObject({ bound_to: { owners: ['team-a'], stacks: [] } })
  })

  test('that is bound to stacks writes by their documents alone', async () => {
    const stack = `stack-${randomUUID()}`
    await trust([ruleFor(user.username, { stacks: [stack] })])
    const it = await job()
    await applied(it.apply(application(), { stack }))
    await denied(it.apply(application()), `documents of stack "${stack}" only`)
    await denied(it.apply(application(), { stack: 'other' }), `documents of stack "${stack}" only`)
    const { json } = await answered(200, it.get(exchangePath))
    expect(json).toMatchObject({ bound_to: { owners: [], stacks: [stack] } })
  })

  test('gives no more than the user has, whatever it is bound to', async () => {
    const bound = await make.user({ permissions: ['view_application'], owners: ['team-b'] })
    await trust([ruleFor(bound.username, { owners: ['team-a', 'team-b'] })])
    expect(await permissionsOf(await job())).toEqual(['view_application@team-b'])
  })
})

describe('a job', () => {
  const tokens = '/api/v3/core/tokens/'
  const strong = [
    'add_token',
    'change_token',
    'delete_token',
    'view_token',
    'view_token_key',
    'impersonate',
    'view_user',
  ]
  const own = 'the access token of a job is for no token of its own user'

  /** Jobs of a user, by a rule without a ceiling and by one with it. */
  async function jobsOf(who: Made): Promise<[string, Asker & { token: string }][]> {
    await trust([ruleFor(who.username)])
    const free = await job()
    const { pk } = await db.trustedIssuer.findFirstOrThrow()
    const name = fresh()
    await applied(
      write(
        await maker(...strong, 'view_application', 'add_application'),
        name,
        onSecond.attrsOf([ruleFor(who.username)]),
      ),
    )
    const limited = await onSecond.job()
    expect(await db.trustedIssuer.count({ where: { pk } })).toBe(1)
    return [
      ['free', free],
      ['limited', limited],
    ]
  }
  const strongUser = () => make.user({ permissions: [...strong, 'view_application', 'add_application'] })

  test('makes, changes and views no token of its own user', async () => {
    for (const who of [user, await strongUser(), await make.user({ superuser: true })]) {
      if (who.username !== user.username && (await permissionsOf(who)).length > 20) await trust([ruleFor(who.username)])
      const jobs = (await permissionsOf(who)).length > 20 ? ([['free', await job()]] as const) : await jobsOf(who)
      const identifier = randomUUID()
      await answered(201, who.post(tokens, { identifier }))
      for (const [, it] of jobs) {
        const refusals = [
          it.post(tokens, { identifier: randomUUID() }),
          it.post(tokens, { identifier: randomUUID(), user: who.pk, intent: 'app_password' }),
          it.post(tokens, { identifier: randomUUID(), expires: new Date(Date.now() + 60_000).toISOString() }),
          it.patch(`${tokens}${identifier}/`, { expires: new Date(Date.now() + 86_400_000).toISOString() }),
          it.patch(`${tokens}${identifier}/`, { description: 'mine' }),
          it.get(`${tokens}${identifier}/view_key/`),
          it.apply([aToken(randomUUID(), { user: who.pk })]),
          it.apply([aToken(identifier, { description: 'mine' })]),
        ]
        for (const asked of refusals) {
          const { status, text } = await asked
          expect([403, 404], text).toContain(status)
        }
      }
      // The key can still be viewed by its user.
      await answered(200, who.get(`${tokens}${identifier}/view_key/`))
    }
  })

  test('nor while it impersonates another user', async () => {
    const who = await strongUser()
    const other = await strongUser()
    const headers = { 'impersonate-user': other.username }
    for (const [, it] of await jobsOf(who)) {
      await denied(it.post(tokens, { identifier: randomUUID(), user: who.pk }, { headers }), own)
      await denied(it.apply([aToken(randomUUID(), { user: who.pk })], { headers }), own)
      const identifier = randomUUID()
      await answered(201, who.post(tokens, { identifier }))
      const viewed = await it.get(`${tokens}${identifier}/view_key/`, { headers })
      expect([403, 404], viewed.text).toContain(viewed.status)
    }
  })

  test('impersonates with its own rights as ceiling', async () => {
    const who = await strongUser()
    const other = await make.user({ permissions: ['view_user', 'view_group'] })
    const headers = { 'impersonate-user': other.username }
    for (const [name, it] of await jobsOf(who))
      expect(await permissionsOf(it, headers)).toEqual(name === 'free' ? ['view_group', 'view_user'] : ['view_user'])
  })

  test('applies no former document that makes one', async () => {
    const who = await strongUser()
    const identifier = randomUUID()
    const former = await applied(who.apply([aToken(identifier, { user: who.pk })]))
    await answered(204, who.delete(`${tokens}${identifier}/`))
    for (const [, it] of await jobsOf(who)) {
      const { status, text } = await it.post(`${former.run}apply/`)
      expect(status, text).toBe(403)
    }
    expect(await db.token.count({ where: { identifier } })).toBe(0)
  })

  describe('adds no rule of its own user, by which it would outlast its own rule', () => {
    const ownRule = 'the access token of a job is for no rule of its own user'
    const evil = { issuer: 'https://evil.example', audience }
    const forOther = ruleFor('someone-else', { name: 'other', claims: { sub: 'other' } })
    const manyRights = [...issuerRights, ...strong, 'view_application', 'add_application']

    test('of users of any strength, by a rule with or without a ceiling, and while it impersonates', async () => {
      const of = (isRoot: boolean) => make.user(isRoot ? { superuser: true } : { permissions: manyRights })
      for (const [isRoot, by] of [
        [true, on.admin],
        [false, on.admin],
        [false, await of(false)],
      ] as const) {
        const who = await of(isRoot)
        const headers = { 'impersonate-user': (await of(isRoot)).username }
        const name = await trust([ruleFor(who.username)], { by })
        const it = await job()
        const rules = [ruleFor(who.username, { name: 'x', claims: { sub: 'me' } })]
        await denied(write(it, fresh(), { ...evil, rules }), ownRule)
        await denied(write(it, fresh(), { ...evil, rules: [forOther, ...rules] }), ownRule)
        await denied(it.apply([anIssuer(fresh(), { ...evil, rules })], { headers }), ownRule)
        await denied(write(it, name, { rules: [ruleFor(who.username), ...rules] }), ownRule)
        await denied(write(it, name, { rules: [ruleFor(who.username, { claims: { sub: 'me' } })] }), ownRule)
        await denied(write(it, name, { rules: [ruleFor(who.username, { owners: ['team-a'] })] }), ownRule)
        const jwks = await issuer.jwks()
        for (const attrs of [{ issuer: evil.issuer }, { audience: 'mine' }, { jwks }, { algorithms: ['ES256'] }])
          await denied(write(it, name, attrs), ownRule)
        await denied(write(it, name, { clock_skew: 300 }), ownRule)
        expect(await db.trustedIssuer.count()).toBe(1)
      }
    })

    test('and may add rules of others, take its own away, and delete the issuer', async () => {
      const root = await make.user({ superuser: true })
      const name = await trust([ruleFor(root.username)])
      const it = await job()
      const others = fresh()
      await applied(write(it, others, { ...evil, rules: [forOther] }))
      await applied(write(it, others, { ...evil, audience: 'another' }))
      await applied(write(it, name, { rules: [forOther, ruleFor(root.username)] }))
      await applied(remove(it, others))
      await applied(write(it, name, { rules: [forOther] }))
      await answered(401, it.get(exchangePath))
      await applied(write(on.admin, name, { rules: [ruleFor(root.username)] }))
      await applied(remove(await job(), name))
    })
  })

  test('of a superuser changes members where no stored token of a superuser is left', async () => {
    const there = await installation({ privateIssuers: [issuer.url] })
    const jobs = exchangeStand(there, issuer)
    const root = await there.make.user({ superuser: true })
    const member = await there.make.user()
    await jobs.trust([ruleFor(root.username)])
    const it = await jobs.job()
    const [named, group] = [{ username: member.username }, `group-${randomUUID()}`]
    await applied(it.apply([aGroup(group, { users: [member.pk] })]))
    await there.db.token.updateMany({ data: { expiring: true, expires: new Date(0) } })
    await applied(it.apply([aGroup(group, { users: [] })]))
    await applied(it.apply([{ model: 'service_core.user', identifiers: named, attrs: { is_active: false } }]))
    await applied(it.apply([{ model: 'service_core.group', state: 'absent', identifiers: { name: group } }]))
  })

  test('of a superuser takes away no last stored token', async () => {
    const there = await installation({ privateIssuers: [issuer.url] })
    const jobs = exchangeStand(there, issuer)
    const root = await there.make.user({ superuser: true })
    await jobs.trust([ruleFor(root.username)])
    const it = await jobs.job()
    const superusers = await there.db.user.findMany({ where: { tokens: { some: {} } }, select: { username: true } })
    const ends = superusers.map(({ username }) => ({
      ...{ model: 'service_core.user', identifiers: { username }, attrs: { is_active: false } },
    }))
    const answer = await it.apply(ends)
    expect(answer.text).toContain('Would leave no superuser who can authenticate')
    expect(await there.db.user.count({ where: { isActive: false } })).toBe(0)
  })

  test('deletes tokens of its own user, who can do so, too', async () => {
    const who = await strongUser()
    await trust([ruleFor(who.username)])
    const identifier = randomUUID()
    await answered(201, who.post(tokens, { identifier }))
    await answered(204, (await job()).delete(`${tokens}${identifier}/`))
  })

  test('gives its own user no other name and no device, by which it would outlast its rule', async () => {
    for (const who of [
      await make.user({ superuser: true }),
      await make.user({
        permissions: ['change_user', 'rename_user', 'view_user', 'add_totpdevice', 'view_totpdevice'],
      }),
    ]) {
      await trust([ruleFor(who.username)])
      const it = await job()
      const identifiers = { username: who.username }
      const renamed = { model: 'service_core.user', state: 'present', identifiers: { username: `x-${who.username}` } }
      await denied(it.apply([{ ...renamed, was: who.username }]), 'is for no other name of its own user')
      await applied(it.apply([{ model: 'service_core.user', identifiers, attrs: { name: 'Shop' } }]))
      const attrs = { user: who.pk, confirmed: true }
      const device = { model: 'service_stages_totp.totpdevice', identifiers: { name: randomUUID() }, attrs }
      await denied(it.apply([device]), 'is for no device of its own user')
    }
  })

  test('opens no session of the dashboard, and the page says why', async () => {
    const root = await make.user({ superuser: true })
    await trust([ruleFor(root.username)])
    const answer = await dashboardOf(on).logIn((await job()).token)
    expect(answer.statusCode).toBe(403)
    expect(textOf(answer.body)).toContain('The access token of a job opens no session.')
    expect(answer.headers['set-cookie']).toBeUndefined()
  })

  test('is in no list of tokens, and is found by no path', async () => {
    const root = await make.user({ superuser: true })
    await trust([ruleFor(root.username)])
    const it = await job()
    const { pk } = await db.exchangedToken.findFirstOrThrow({ where: { userPk: root.pk } })
    const { text } = await answered(200, it.get(`${tokens}?user=${root.pk}`))
    expect(text).not.toContain(pk)
    for (const path of [pk, 'null']) await answered(404, it.delete(`${tokens}${path}/`))
    expect(Object(Object((await it.get(exchangePath)).json)).identifier).toBeNull()
  })
})

describe('it ends', () => {
  const isIn = async (it: Asker) => (await it.get('/api/v3/core/users/me/')).status
  const ends = async (end: (name: string) => Promise<unknown>) => {
    const name = await trust([ruleFor(user.username), ruleFor(user.username, { name: 'z', claims: { sub: 'z' } })])
    const it = await job()
    expect(await isIn(it)).toBe(200)
    await end(name)
    const answers = [await it.get('/api/v3/core/users/me/'), await it.get(exchangePath), await it.apply([])]
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401])
  }
  const main = (more: Partial<Rule>) => (name: string) =>
    applied(write(on.admin, name, { rules: [ruleFor(user.username, more)] }))

  const change = (attrs: object) => (name: string) => applied(write(on.admin, name, attrs))

  test.each<[string, (name: string) => Promise<unknown>]>([
    ['its rule is removed', (name) => applied(write(on.admin, name, { rules: [] }))],
    ['its rule has another name', main({ name: 'other' })],
    ['its rule has other claims', main({ claims: { repository: 'acme/shop' } })],
    ['its rule has other owners', main({ owners: ['team-a'] })],
    ['its rule has other stacks', main({ stacks: ['one'] })],
    ['its rule has another user', async (name) => main({ user: (await make.user()).username })(name)],
    ['its issuer has another URL', change({ issuer: 'https://other.example' })],
    ['its issuer has another audience', change({ audience: 'other' })],
    ['its issuer has keys of its own', async (name) => change({ jwks: await issuer.jwks() })(name)],
    ['its issuer has other algorithms', change({ algorithms: ['ES256'] })],
    [
      'a weaker user has written the issuer',
      async (name) => applied(write(await maker('view_application', 'add_application'), name, { clock_skew: 61 })),
    ],
    [
      'its user is renamed, and another one has the name',
      async () => {
        const { username } = user
        await db.user.update({ where: { pk: user.pk }, data: { username: `was-${username}` } })
        await db.user.update({ where: { pk: (await make.user()).pk }, data: { username } })
      },
    ],
    ['its issuer is deleted', (name) => applied(remove(on.admin, name))],
    ['its user is deactivated', () => db.user.update({ where: { pk: user.pk }, data: { isActive: false } })],
    ['its user is deleted', () => db.user.delete({ where: { pk: user.pk } })],
    [
      'its time is over, by the clock of the database',
      () => db.$executeRaw(sql`UPDATE exchanged_tokens SET expires = now() WHERE user_pk = ${user.pk}`),
    ],
  ])('when %s', (_, end) => ends(end))

  test.each<[string, (name: string) => Promise<unknown>, object | undefined]>([
    ['rule', (name) => applied(write(on.admin, name, { rules: [] })), undefined],
    ['keys', async (name) => applied(write(on.admin, name, { jwks: await issuer.jwks() })), { jwks: null }],
  ])('for good: not when its %s is put back', async (_, change, back) => {
    const name = await trust([ruleFor(user.username)])
    const it = await job()
    await change(name)
    await applied(write(on.admin, name, back ?? { rules: [ruleFor(user.username)] }))
    expect(await isIn(it)).toBe(401)
    expect(await isIn(await job())).toBe(200)
  })

  test('for good: not when its user gets the former name back', async () => {
    await trust([ruleFor(user.username)])
    const it = await job()
    const [is, was] = [`x-${user.username}`, user.username]
    const rename = (username: string, was: string) =>
      applied(on.admin.apply([{ model: 'service_core.user', identifiers: { username }, was, state: 'present' }]))
    await rename(is, was)
    await rename(was, is)
    expect(await isIn(it)).toBe(401)
    expect(await isIn(await job())).toBe(200)
  })

  test('for good, where it was given while its rule was removed', async () => {
    const name = await trust([ruleFor(user.username)])
    const jwt = await sign()
    const release = await held(on, (tx) => tx.$executeRaw(sql`LOCK TABLE audit_rows IN SHARE MODE`))
    const locks = sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
    const wait = (count: number) => until(`${count} to wait`, async () => (await rows(db, locks)).length >= count)
    const giving = post(fieldsOf(jwt))
    await wait(1)
    const removing = write(on.admin, name, { rules: [] })
    await wait(2)
    await release()
    const { accessToken } = await giving
    await applied(removing)
    await applied(write(on.admin, name, { rules: [ruleFor(user.username)] }))
    expect(await isIn(on.as(accessToken))).toBe(401)
    expect(await isIn(await job())).toBe(200)
  })

  test('an exchange that deadlocks with a change of its issuer and its user is tried again', async () => {
    const name = await trust([ruleFor(user.username)])
    const changed = Promise.withResolvers<void>()
    const changing = db.$transaction(async (tx) => {
      await tx.$executeRaw(sql`UPDATE trusted_issuers SET clock_skew = 61 WHERE name = ${name}`)
      changed.resolve()
      await tx.$executeRawUnsafe(`DO $$ BEGIN
        WHILE NOT EXISTS (SELECT FROM pg_locks WHERE transactionid = pg_current_xact_id()::xid AND NOT granted) LOOP
          PERFORM pg_sleep(0.01);
        END LOOP;
        UPDATE users SET name = 'Changed' WHERE pk = ${user.pk};
      END $$`)
    })
    await changed.promise
    const [it] = await Promise.all([job(), changing])
    expect(await isIn(it)).toBe(200)
    expect((await db.user.findUniqueOrThrow({ where: { pk: user.pk } })).name).toBe('Changed')
  })

  test('and not when other rules, their order or the claims’ order change', async () => {
    const other = ruleFor(user.username, { name: 'other' })
    const name = await trust([ruleFor(user.username), other])
    const it = await job()
    const reordered = { ref: 'refs/heads/main', repository: 'acme/shop' }
    await applied(write(on.admin, name, { rules: [other, ruleFor(user.username, { claims: reordered })] }))
    await applied(write(on.admin, name, { rules: [ruleFor(user.username)] }))
    await applied(write(on.admin, name, { clock_skew: 61 }))
    await applied(on.admin.apply([{ ...anIssuer(fresh()), was: name, state: 'present' }]))
    expect(await isIn(it)).toBe(200)
  })

  test('not for a rule that is stored without what has a default', async () => {
    const name = await trust([ruleFor(user.username)])
    await db.$executeRaw(sql`UPDATE trusted_issuers SET rules =
      (SELECT jsonb_agg(r - 'stacks' - 'owners') FROM jsonb_array_elements(rules) r) WHERE name = ${name}`)
    expect(await isIn(await job())).toBe(200)
  })

  test('after 15 minutes by the clock of the database, and cannot be longer', async () => {
    await trust([ruleFor(user.username)])
    const it = await job()
    const [row] = await db.$queryRaw<{ left: number }[]>(
      sql`SELECT extract(epoch FROM expires - now())::float8 AS left FROM exchanged_tokens WHERE user_pk = ${user.pk}`,
    )
    expect(row?.left).toBeLessThanOrEqual(900)
    expect(row?.left).toBeGreaterThan(700)
    for (const method of ['PATCH', 'PUT', 'DELETE'] as const) {
      const { status } = await it.send({ method, url: exchangePath })
      expect([404, 405]).toContain(status)
    }
  })

  test('in a wait, when its rule goes', async () => {
    const reader = await make.user({ permissions: ['view_oauth2provider'] })
    const name = await trust([ruleFor(reader.username)])
    const it = await job()
    const path = '/api/v3/consumers/oauth2/'
    const { json } = await answered(200, it.get(path))
    const waiting = it.get(`${path}?wait=30&since=${encodeURIComponent(Object(json).revision)}`)
    await until('the wait', async () =>
      (await on.admin.get('/-/metrics/')).text.includes('gatewright_waits{kind="consumers"} 1\n'),
    )
    await applied(write(on.admin, name, { rules: [] }))
    expect((await waiting).status).toBe(401)
  })

  test('but a run that it submitted before goes on', async () => {
    const name = await trust([ruleFor(user.username)])
    const it = await job()
    const release = on.hold()
    const slug = `app-${randomUUID()}`
    const submitted = await answered(202, it.apply([anApplication(slug, { name: 'App' })], { prefer: 'respond-async' }))
    await db.trustedIssuer.deleteMany({ where: { name } })
    expect(await isIn(it)).toBe(401)
    release()
    await until('the run', async () => Object((await on.admin.get(submitted.run)).json).state === 'done')
    expect(await db.application.count({ where: { slug } })).toBe(1)
  })

  test('and its rights end at once, when they are taken from its user', async () => {
    await trust([ruleFor(user.username)])
    const it = await job()
    await db.membership.deleteMany({ where: { userPk: user.pk } })
    expect(await permissionsOf(it)).toEqual([])
    await answered(403, it.apply([aGroup(`group-${randomUUID()}`)]))
  })
})

test('a document is applied twice and in another order without a change', async () => {
  await db.trustedIssuer.deleteMany()
  const name = fresh()
  const rules = [
    ruleFor(user.username, { owners: ['team-a', 'team-b'], claims: { project_path: 'acme/shop', ref: 'main' } }),
    ruleFor(user.username, { name: 'other', claims: { sub: 'x', ref: 'refs/heads/*' } }),
  ]
  const attrs = { ...attrsOf(rules), audience, algorithms: ['RS256', 'EdDSA'], jwks: await issuer.jwks() }
  const first = await applied(write(on.admin, name, attrs))
  expect(first.logs).toEqual([expect.stringMatching(/^trusted issuer "issuer-\S+ created/)])
  const orders = [
    attrs,
    { ...attrs, algorithms: ['EdDSA', 'RS256'] },
    { ...attrs, rules: rules.toReversed() },
    {
      ...attrs,
      rules: rules.map(({ claims, ...rest }) => ({
        claims: Object.fromEntries(Object.entries(claims).reverse()),
        ...rest,
      })),
    },
    { ...attrs, rules: rules.map((each) => ({ owners: [], stacks: [], ...each })) },
  ]
  for (const order of orders)
    expect((await applied(write(on.admin, name, order))).logs, JSON.stringify(order)).toEqual([
      `trusted issuer "${name}" unchanged`,
    ])
})

test('doubts are in plans and applies, and keep nothing from being written', async () => {
  await db.trustedIssuer.deleteMany()
  const name = fresh()
  const rules = [ruleFor(user.username, { claims: { repository: 'acme/shop' } })]
  const warning = `warning: trusted issuer "${name}": rule "main" takes jobs of pull requests, too: add their ref, environment or event`
  const plan = await answered(200, on.admin.plan([anIssuer(name, attrsOf(rules))]))
  expect(plan.logs).toContain(warning)
  const written = await applied(write(on.admin, name, attrsOf(rules)))
  expect(written.logs).toContain(warning)
})
