import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Answer, Asker } from '../support/asker.ts'
import { installation } from '../support/installation.ts'

/** A plan with `reset` under an owner lists what the owner manages, and the document does not name. */

const on = await installation()

const fresh = () => `unnamed-${randomUUID().slice(0, 8)}`
const model = 'service_core.application'
const application = (slug: string) => ({ model, identifiers: { slug }, attrs: { name: 'A' } })
const send = (slugs: readonly string[], owner: string | null, query: string, { by = on.admin, prune = false } = {}) =>
  by.put(
    `/api/v3/blueprints/${query}`,
    { version: 1, metadata: { name: 'unnamed' }, ...(prune && { prune }), entries: slugs.map(application) },
    { headers: owner === null ? {} : { 'gatewright-owner': owner } },
  )
const unnamedOf = async ({ headers }: Answer, by: Asker = on.admin) =>
  ((await by.get(headers['content-location'] ?? '')).json as { unnamed: unknown }).unnamed
const logsOf = ({ json }: Answer) => (json as { logs: string[] }).logs

test('what another document of the owner has, and not what another owner has; nothing is deleted', async () => {
  const [owner, kept, gone, other] = [fresh(), fresh(), fresh(), fresh()]
  await send([kept, gone], owner, '')
  await send([other], fresh(), '')
  const plan = await send([kept], owner, '?dry_run=true&reset=true')
  expect(logsOf(plan)).toEqual([
    `application "${kept}" unchanged`,
    `application "${gone}" of owner "${owner}" is not in the document`,
  ])
  expect(await unnamedOf(plan)).toEqual([{ model, key: { slug: gone }, owner }])
  const applied = await send([kept], owner, '?reset=true', {})
  expect(applied).toMatchObject({ status: 200, json: { applied: true, logs: [`application "${kept}" unchanged`] } })
  expect(await unnamedOf(applied)).toBeNull()
  expect(await on.db.application.count({ where: { slug: gone } })).toBe(1)
  expect(await unnamedOf(await send([kept, gone], owner, '?dry_run=true&reset=true'))).toEqual([])
})

test('is not looked for without reset, and without an owner; a document that prunes has it in its changes', async () => {
  const [owner, kept, gone] = [fresh(), fresh(), fresh()]
  await send([kept, gone], owner, '')
  expect(await unnamedOf(await send([kept], owner, '?dry_run=true'))).toBeNull()
  expect(await unnamedOf(await send([fresh()], null, '?dry_run=true&reset=true'))).toBeNull()
  const pruning = await send([kept], owner, '?dry_run=true&reset=true', { prune: true })
  expect(await unnamedOf(pruning)).toEqual([])
  expect(logsOf(pruning)).toContain(`application "${gone}" would be deleted`)
})

test('a caller hears of no row for which it has no permission', async () => {
  const [owner, name] = [fresh(), fresh()]
  const entries = [
    {
      model: 'service_providers_scim.scimprovider',
      identifiers: { name },
      attrs: { url: 'https://a.example', token: name },
    },
    application(name),
  ]
  const headers = { 'gatewright-owner': owner }
  await on.admin.put('/api/v3/blueprints/', { version: 1, metadata: { name }, entries }, { headers })
  const permissions = ['view_application', 'add_application', 'change_application']
  const caller = await on.make.user({ permissions })
  const plan = await send([fresh()], owner, '?dry_run=true&reset=true', { by: caller })
  expect(await unnamedOf(plan, caller)).toEqual([{ model, key: { slug: name }, owner }])
  expect(plan.text).not.toContain('scim')
})
