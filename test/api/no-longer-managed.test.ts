import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Answer, type Asker, applied, applyPath, type Entry, installation, named } from '../support/kit.ts'

/** A plan reports the fields that the document before named, and this one does not. */

const on = await installation()

const fresh = () => `unmanaged-${randomUUID().slice(0, 8)}`
const model = 'service_core.application'
const application = (slug: string, attrs: object = {}): Entry => ({
  ...{ model, identifiers: { slug }, attrs: { name: 'A', ...attrs } },
})
const { apply, plan } = on.admin
const unmanagedOf = async (answer: Answer, by: Asker = on.admin) => (await by.runOf(answer)).unmanaged
const said = { meta_description: 'said once', group: 'Group', open_in_new_tab: false }

test('of an application: by its slug; a field with its default is not reported, and an apply reports nothing', async () => {
  const slug = fresh()
  const body = await named('oauth2', slug)
  const { client_secret: _secret, ...provider } = body.provider
  const whole = { ...body, provider: { ...provider, client_secret: 'x'.repeat(40) } }
  const app = { slug, name: 'A' }
  await on.admin.put(applyPath, { ...whole, app: { ...app, ...said } })
  const short = { ...body, app, provider }
  const planned = await on.admin.put(`${applyPath}?dry_run=true`, short)
  expect(planned.logs).toEqual([
    `provider oauth2 "${slug}" unchanged`,
    `application "${slug}" unchanged`,
    `provider oauth2 "${slug}": client_secret is no longer managed, keeps its value`,
    `application "${slug}": meta_description, group are no longer managed, keep their values`,
  ])
  expect(await unmanagedOf(planned)).toEqual([
    { model: 'service_providers_oauth2.oauth2provider', key: { name: slug }, fields: ['client_secret'] },
    { model, key: { slug }, fields: ['meta_description', 'group'] },
  ])
  // It is no part of the plan.
  const done = await applied(on.admin.put(applyPath, short, { ifMatch: planned.etag }))
  expect(done.logs.join()).not.toContain('no longer managed')
  expect(await unmanagedOf(done)).toEqual([])
  // The document before is this one now.
  expect(await unmanagedOf(await on.admin.put(`${applyPath}?dry_run=true`, short))).toEqual([])
})

test('of a blueprint: by its title and owner, also when the last run changed nothing', async () => {
  const [slug, other, name] = [fresh(), fresh(), fresh()]
  const owner = name
  await apply([application(slug, said), application(other, said)], { name, owner })
  await apply([application(slug, said), application(other, said)], { name, owner })
  const planned = await plan([application(slug, { group: 'Group' }), application(other, said)], { name, owner })
  expect(await unmanagedOf(planned)).toEqual([{ model, key: { slug }, fields: ['meta_description'] }])
})

test('of a blueprint with another title: nothing; of a row under its new name: its fields', async () => {
  const [slug, renamed] = [fresh(), fresh()]
  await apply([application(slug, said)], { name: 'named' })
  expect(await unmanagedOf(await plan([application(slug)], { name: 'another name' }))).toEqual([])
  const entry = { ...application(renamed), was: slug }
  expect(await unmanagedOf(await plan([entry], { name: 'named' }))).toEqual([
    { model, key: { slug }, fields: ['meta_description', 'group'] },
  ])
})

test('not what another entry names, what a reset puts back, or what is gone with its entry', async () => {
  const [slug, gone, name] = [fresh(), fresh(), fresh()]
  await apply([application(slug, said), application(gone, said)], { name })
  const two = [
    application(slug, { group: 'Group' }),
    { ...application(slug), attrs: { meta_description: 'said once' } },
  ]
  expect(await unmanagedOf(await plan(two, { name }))).toEqual([])
  const reset = await plan([application(slug)], { name, query: 'reset=true' })
  expect(await unmanagedOf(reset)).toEqual([])
  expect(reset.logs[0]).toContain('meta_description "said once" -> ""')
})

test('nothing of a run that the caller may not see, and of a document that cannot be opened', async () => {
  const slug = fresh()
  const body = await named('oauth2', slug)
  const app = { slug, name: 'A' }
  await on.admin.put(applyPath, { ...body, app: { ...app, ...said } })
  const planBy = (by: Asker) => by.put(`${applyPath}?dry_run=true`, { ...body, app })
  const permissions = ['application', 'oauth2provider'].flatMap((each) => [`view_${each}`, `change_${each}`])
  const caller = await on.make.user({ permissions })
  expect(await unmanagedOf(await planBy(caller), caller)).toEqual([])
  const reader = await on.make.user({ permissions: [...permissions, 'view_run'] })
  expect(await unmanagedOf(await planBy(reader), reader)).toMatchObject([{ fields: ['meta_description', 'group'] }])
  await on.db.run.updateMany({ where: { slug, mode: 'apply' }, data: { blueprint: 'closed' } })
  const planned = await planBy(on.admin)
  expect(planned).toMatchObject({ status: 200, headers: { etag: expect.any(String) } })
  expect(await unmanagedOf(planned)).toEqual([])
})
