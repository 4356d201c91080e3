import { beforeAll, describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { oneScript } from '../../src/models/scripts.ts'
import { lookAlike, skeletonOf } from '../../src/models/skeleton.ts'
import { fillSkeletons } from '../../src/runs/skeletons.ts'
import { askAs } from '../support/asker.ts'
import { type Installation, installation } from '../support/installation.ts'

/** Names that look like those of others, and usernames of several scripts. */

let on: Installation
beforeAll(async () => {
  on = await installation()
})

const fields = { 'service_core.group': 'name', 'service_rbac.role': 'name', 'service_core.user': 'username' } as const
type Model = keyof typeof fields

type Entry = { model: Model; name: string; to?: string; was?: string; state?: string }
const document = (entries: readonly Entry[]) => ({
  version: 1,
  metadata: { name: 'a' },
  entries: entries.map(({ model, name, to, ...others }) => ({
    model,
    identifiers: { [fields[model]]: name },
    attrs: to === undefined ? {} : { [fields[model]]: to },
    ...others,
  })),
})
const send = (entries: readonly Entry[], by = on.admin) => by.put('/api/v3/blueprints/', document(entries))
const field = (model: Model, message: string, entry = 0) => ({
  status: 400,
  json: { entries: { [entry]: { [fields[model]]: [message] } } },
})

describe('two names look alike', () => {
  test.each([
    ['admins', 'аdmins'],
    ['Kate', 'Кate'],
    ['kate', 'КАТЕ'],
    ['Marketing', 'Мarketing'],
    ['Ingo', 'Іngo'],
    ['ingo', 'Іngo'],
    ['Nina', 'Νina'],
    ['admin', 'adm\u0131n'],
    ['admin', 'ADM\u0130N'],
    ['ops', 'ορs'],
    ['admins', 'ad\u034fmins'],
    ['office', 'oﬃce'],
  ])('%s and %s', (one, other) => {
    expect(lookAlike(one, other)).toBe(true)
    expect(lookAlike(other, one)).toBe(true)
  })

  test.each([
    ['paul1', 'paull'],
    ['user-0', 'user-O'],
    ['modern', 'modem'],
    ['zoe', 'zoë'],
    ['müller', 'muller'],
    ['Ольга', 'Олег'],
    ['山田', '山本'],
  ])('but not %s and %s', (one, other) => {
    expect(lookAlike(one, other)).toBe(false)
  })

  test('only where a model says so, and there the table keeps what a name looks like', async () => {
    const { models } = await loadRegistry()
    const distinct = models.flatMap(({ name, fields }) =>
      [...fields.values()].flatMap((each) => (each.distinct ? [`${name} ${each.name}`] : [])),
    )
    expect(distinct.sort()).toEqual(
      Object.entries(fields)
        .map((each) => each.join(' '))
        .sort(),
    )
  })
})

test.each(Object.keys(fields) as Model[])(
  'a twin of a %s is refused, when it is created and renamed',
  async (model) => {
    const noun = model.split('.')[1]
    const refused = field(model, `Looks like the name of ${noun} "Kraken": choose another.`)
    expect(await send([{ model, name: 'Kraken' }])).toMatchObject({ status: 200 })
    expect(await send([{ model, name: 'Κrаken' }])).toMatchObject({ status: 400 })
    expect(await send([{ model, name: 'КRАКЕN' }])).toMatchObject({ status: 400 })
    // Of one script, so that it is a username but for its looks.
    const twin = 'Kr\u0251ken'
    expect(await send([{ model, name: twin }])).toMatchObject(refused)
    expect(await send([{ model, name: 'Other' }])).toMatchObject({ status: 200 })
    expect(await send([{ model, name: 'Other', to: twin }])).toMatchObject(refused)
    expect(await send([{ model, name: twin, was: 'Other' }])).toMatchObject(refused)
    // The row that is there may take the other form, and is in the way of those that look like it then.
    expect(await send([{ model, name: 'Kraken', to: twin }])).toMatchObject({ status: 200 })
    expect(await send([{ model, name: twin }])).toMatchObject({ status: 200 })
    await fillSkeletons(on.db, await loadRegistry(), 100)
    expect(await send([{ model, name: 'kraken' }])).toMatchObject(
      field(model, `Looks like the name of ${noun} "${twin}": choose another.`),
    )
    expect(
      await send([
        { model, name: twin, state: 'absent' },
        { model, name: 'kraken' },
      ]),
    ).toMatchObject({ status: 200 })
  },
)

test('twins within one document are found, by the check and by the apply', async () => {
  const model = 'service_core.group'
  const twins = [
    { model, name: 'Harbour' },
    { model, name: 'Hаrbour' },
  ] as const
  const message = 'Looks like the name of group "Harbour": choose another.'
  expect(await send(twins)).toMatchObject(field(model, message, 1))
  expect(await on.admin.put('/api/v3/blueprints/?dry_run=true', document(twins))).toMatchObject(
    field(model, message, 1),
  )
  expect(await on.db.group.count({ where: { name: { endsWith: 'rbour' } } })).toBe(0)
})

test('a row is named only to callers who may view it', async () => {
  const model = 'service_core.group'
  await send([{ model, name: 'Vault keepers' }])
  const twin = [{ model, name: 'Vаult keepers' }] as const
  for (const [permissions, whose] of [
    [['add_group'], 'another group'],
    [['add_group', 'view_group'], 'group "Vault keepers"'],
  ] as const) {
    const { token } = await on.make.user({ permissions: [...permissions] })
    const answer = await send(twin, askAs(on.app, token))
    expect(answer).toMatchObject(field(model, `Looks like the name of ${whose}: choose another.`))
  }
})

test('of two that look alike and are made at the same time, one is made', async () => {
  for (let round = 0; round < 5; round += 1) {
    const names = ['Beacon', 'Bеacon', 'Beаcon'].map((name) => `${name} ${round}`)
    const answers = await Promise.all(
      names.map((name) => on.admin.send({ method: 'POST', url: '/api/v3/core/groups/', payload: { name } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400])
  }
})

test('rows of earlier versions are filled in, in portions, and keep working beside their twins', async () => {
  const registry = await loadRegistry()
  const [one, other] = [uuid7(), uuid7()]
  await on.db.group.createMany({
    data: [
      { pk: one, name: 'Signal' },
      { pk: other, name: 'Sіgnal' },
    ],
  })
  const made = await on.make.user()
  expect(await fillSkeletons(on.db, registry, 1)).toMatchObject({ isDone: false })
  expect(await fillSkeletons(on.db, registry, 100)).toMatchObject({ isDone: true })
  expect(await fillSkeletons(on.db, registry, 100)).toEqual({ filled: 0, isDone: true })
  expect(await on.db.user.findUniqueOrThrow({ where: { pk: made.pk } })).toMatchObject({
    skeleton: skeletonOf(made.username),
  })
  const model = 'service_core.group'
  for (const name of ['Signal', 'Sіgnal']) {
    const sent = document([{ model, name }])
    Object.assign(sent.entries[0]?.attrs ?? {}, { attributes: { name } })
    expect(await on.admin.put('/api/v3/blueprints/', sent)).toMatchObject({ status: 200 })
  }
  expect(await send([{ model, name: 'Sіgnаl' }])).toMatchObject({ status: 400 })
  // A version that knows of no skeletons renames a row: it is filled in again.
  await on.db.group.update({ where: { pk: one }, data: { name: 'Semaphore' } })
  expect(await on.db.group.findUniqueOrThrow({ where: { pk: one } })).toMatchObject({ skeleton: null })
  expect(await fillSkeletons(on.db, registry, 100)).toEqual({ filled: 1, isDone: true })
  expect(await send([{ model, name: 'Semaphоre' }])).toMatchObject({ status: 400 })
})

describe('a username has letters of one script', () => {
  test.each([
    'ada.l+ops@example-1.com_x',
    'Zoë',
    'Zoe\u0308',
    'Ольга-2',
    'Νίκος',
    '山田さくら',
    'サーバー',
    'tokyo山田',
    '김철수kim',
    'ad\u00aa',
    '٣علي',
    'ada٣',
  ])('%s has', (name) => {
    expect(oneScript(name)).toBeUndefined()
  })

  test.each(['аmira.haddad', 'rооt', 'Κate', 'Ольгa', 'さくら김', 'ольгаνικος', 'aⲁ'])('%s has not', (name) => {
    expect(oneScript(name)).toBe('Must have letters of one script, such as Latin or Cyrillic.')
  })

  test('each letter has a script', () => {
    const letters = Array.from({ length: 0x110000 }, (_, code) => code)
      .filter((code) => code < 0xd800 || code > 0xdfff)
      .map((code) => String.fromCodePoint(code))
      .filter((letter) => /[\p{L}\p{M}]/u.test(letter))
    expect(letters.filter((letter) => oneScript(letter) !== undefined)).toEqual([])
  })

  test('when it is new: one of an earlier version keeps working', async () => {
    const model = 'service_core.user'
    const message = 'Must have letters of one script, such as Latin or Cyrillic.'
    expect(await send([{ model, name: 'borіs' }])).toMatchObject(field(model, message))
    expect(await send([{ model, name: 'boris' }])).toMatchObject({ status: 200 })
    expect(await send([{ model, name: 'boris', to: 'bоrislav' }])).toMatchObject(field(model, message))
    const { token, pk } = await on.make.user({ permissions: ['change_user', 'delete_user'] })
    await on.db.user.update({ where: { pk }, data: { username: 'оlga-old' } })
    const by = askAs(on.app, token)
    expect(await by.send({ method: 'GET', url: '/api/v3/core/users/me/' })).toMatchObject({
      json: { user: { username: 'оlga-old' } },
    })
    expect(await send([{ model, name: 'оlga-old', to: 'оlga-old' }], by)).toMatchObject({ status: 200 })
    expect(await send([{ model, name: 'оlga-old', to: 'оlga-new' }])).toMatchObject(field(model, message))
    expect(await send([{ model, name: 'оlga-old', state: 'absent' }])).toMatchObject({ status: 200 })
  })
})
