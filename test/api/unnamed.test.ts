import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Answer, type Asker, anApplication, aProvider, installation } from '../support/kit.ts'

/** A plan with `reset` under an owner lists what the owner manages, and the document does not name. */

const on = await installation()

const fresh = () => `unnamed-${randomUUID().slice(0, 8)}`
const model = 'service_core.application'
const application = (slug: string) => anApplication(slug, { name: 'A' })
const reset = { query: 'reset=true' }
const { apply, plan } = on.admin
const unnamedOf = async (answer: Answer, by: Asker = on.admin) => (await by.runOf(answer)).unnamed

test('what another document of the owner has, and not what another owner has; nothing is deleted', async () => {
  const [owner, kept, gone, other] = [fresh(), fresh(), fresh(), fresh()]
  await apply([kept, gone].map(application), { owner })
  await apply([application(other)], { owner: fresh() })
  const planned = await plan([application(kept)], { ...reset, owner })
  expect(planned.logs).toEqual([
    `application "${kept}" unchanged`,
    `application "${gone}" of owner "${owner}" is not in the document`,
  ])
  expect(await unnamedOf(planned)).toEqual([{ model, key: { slug: gone }, owner }])
  const applied = await apply([application(kept)], { ...reset, owner })
  expect(applied).toMatchObject({ status: 200, json: { applied: true, logs: [`application "${kept}" unchanged`] } })
  expect(await unnamedOf(applied)).toBeNull()
  expect(await on.db.application.count({ where: { slug: gone } })).toBe(1)
  expect(await unnamedOf(await plan([kept, gone].map(application), { ...reset, owner }))).toEqual([])
})

test('is not looked for without reset, and without an owner; a document that prunes has it in its changes', async () => {
  const [owner, kept, gone] = [fresh(), fresh(), fresh()]
  await apply([kept, gone].map(application), { owner })
  expect(await unnamedOf(await plan([application(kept)], { owner }))).toBeNull()
  expect(await unnamedOf(await plan([application(fresh())], reset))).toBeNull()
  const pruning = await plan([application(kept)], { ...reset, owner, members: { prune: true } })
  expect(await unnamedOf(pruning)).toEqual([])
  expect(pruning.logs).toContain(`application "${gone}" would be deleted`)
})

test('a caller hears of no row for which it has no permission', async () => {
  const [owner, name] = [fresh(), fresh()]
  const entries = [aProvider('scim', name, { url: 'https://a.example', token: name }), application(name)]
  await apply(entries, { name, owner })
  const permissions = ['view_application', 'add_application', 'change_application']
  const caller = await on.make.user({ permissions })
  const planned = await caller.plan([application(fresh())], { ...reset, owner })
  expect(await unnamedOf(planned, caller)).toEqual([{ model, key: { slug: name }, owner }])
  expect(planned.text).not.toContain('scim')
})
