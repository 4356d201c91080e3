import { expect, test } from 'vitest'
import { compareAll } from '../../src/runs/outside.ts'
import { type Answer, answered, applied, installation, until } from '../support/kit.ts'

/** The state of each application, as the filter of the list and its history have it. */

const there = await installation()

type State = {
  readonly state: string
  readonly failing_since: string | null
  readonly failing_reason: string | null
  readonly changed_outside: readonly string[]
}

async function stateOf(slug: string, as = there.admin): Promise<State | null> {
  const { json } = await answered(200, as.get(`/api/v3/core/applications/${slug}/history/`))
  return (json as { state: State | null }).state
}

const inState = async (state: string) => {
  const { json } = await there.admin.get(`/api/v3/core/applications/?state=${state}&page_size=100`)
  return (json as { results: { slug: string }[] }).results.map(({ slug }) => slug)
}

const put = (slug: string, app: Record<string, unknown> = {}, prefer = '') =>
  there.admin.submit('oauth2', slug, { app, ...(prefer !== '' && { prefer }) })

const entry = (slug: string) => ({ model: 'service_core.application', identifiers: { slug }, attrs: { name: slug } })

const async = 'respond-async'

/** A run that does `meanwhile` while it waits. */
async function heldUp(submit: () => Promise<Answer>, meanwhile: (id: string) => Promise<unknown>): Promise<string> {
  const release = there.hold()
  const { runId } = await answered(202, submit())
  await meanwhile(String(runId))
  release()
  return String(runId)
}

/** A run that fails: its document cannot be opened. */
async function failed(submit: () => Promise<Answer>, meanwhile = async () => {}): Promise<string> {
  const id = await heldUp(submit, async (id) => {
    await meanwhile()
    await there.db.run.update({ where: { id }, data: { blueprint: 'v1.not.sealed.here' } })
  })
  const run = () => there.db.run.findUniqueOrThrow({ where: { id } })
  await until('the run to fail', async () => (await run()).state === 'failed')
  return id
}

const cancelled = (submit: () => Promise<Answer>) =>
  heldUp(submit, (id) => answered(200, there.admin.post(`/api/v3/blueprints/runs/${id}/cancel/`)))

test('it is failing since the first run that was not applied, until one is', async () => {
  const slug = 'state-failing'
  await applied(put(slug))
  expect(await stateOf(slug)).toMatchObject({ state: 'applied', failing_since: null, failing_reason: null })
  const change = () => put(slug, { group: 'New' }, async)
  const { cause: why } = await there.db.run.findUniqueOrThrow({ where: { id: await failed(change) } })
  const first = await stateOf(slug)
  expect(first).toMatchObject({ state: 'failing', failing_since: expect.any(String), failing_reason: why })
  await failed(change)
  expect(await stateOf(slug)).toEqual(first)
  expect(why).toContain('SECRET_KEY')
  expect(await inState('failing')).toContain(slug)
  const reader = there.as((await there.make.user({ permissions: ['view_application'] })).token)
  expect(await stateOf(slug, reader)).toEqual({ ...first, failing_reason: 'server_error' })
  expect(await inState('applied')).not.toContain(slug)
  await applied(put(slug))
  expect(await stateOf(slug)).toMatchObject({ state: 'applied', failing_since: null, failing_reason: null })
})

test('a document says it of all applications that it names, and a plan of none', async () => {
  const slugs = ['state-set-one', 'state-set-two']
  const entries = slugs.map(entry)
  await applied(there.admin.apply(entries))
  await failed(() => there.admin.plan(entries, { prefer: async }))
  for (const slug of slugs) expect(await stateOf(slug)).toMatchObject({ state: 'applied' })
  await failed(() => there.admin.apply(entries, { prefer: async }))
  for (const slug of slugs) expect(await stateOf(slug)).toMatchObject({ state: 'failing' })
  await applied(there.admin.apply([entry('state-set-one')]))
  expect((await stateOf('state-set-one'))?.state).toBe('applied')
  expect((await stateOf('state-set-two'))?.state).toBe('failing')
})

test('a run that a user cancelled leaves it as it was', async () => {
  const slug = 'state-cancelled'
  const change = () => put(slug, { group: 'New' }, async)
  await applied(put(slug))
  await cancelled(change)
  expect(await stateOf(slug)).toMatchObject({ state: 'applied', failing_since: null })
  await failed(change)
  const before = await stateOf(slug)
  await cancelled(change)
  expect(await stateOf(slug)).toEqual(before)
  expect(before?.state).toBe('failing')
})

test.each([
  ['a document', (slug: string, was: string) => there.admin.apply([{ ...entry(slug), was }], { prefer: async })],
  ['a PUT', (slug: string, was: string) => put(slug, { was }, async)],
])('%s that renames it names it by its former slug too', async (what, rename) => {
  const [was, slug] = [`state-was-${what.length}`, `state-renamed-${what.length}`]
  await applied(put(was))
  await failed(
    () => rename(slug, was),
    async () => expect((await stateOf(was))?.state).toBe('waiting'),
  )
  expect((await stateOf(was))?.state).toBe('failing')
  expect(await inState('failing')).toContain(was)
  await answered(202, rename(slug, was))
  await until('the rename', async () => (await inState('applied')).includes(slug))
  expect(await inState('failing')).not.toContain(slug)
})

test('its state goes with it when it is renamed, and ends with it', async () => {
  const [was, slug] = ['state-moves', 'state-moved']
  await applied(put(was))
  await there.db.$executeRawUnsafe(`UPDATE applications SET group_name = 'by SQL' WHERE slug = '${was}'`)
  await compareAll(there.db, there.engine.registry, (error) => expect.unreachable(String(error)))
  await applied(there.admin.apply([{ ...entry(slug), was }]))
  expect(await inState('changed_outside')).toEqual([slug])
  await applied(there.admin.apply([entry(was)]))
  expect(await inState('applied')).toContain(was)
  await answered(204, there.admin.delete(`/api/v3/core/applications/${slug}/`))
  await applied(there.admin.apply([entry(slug)]))
  expect(await inState('changed_outside')).toEqual([])
})

test('it waits while a run that names it has not ended', async () => {
  const slug = 'state-waiting'
  await applied(put(slug))
  const release = there.hold()
  const sent = put(slug, { group: 'New' })
  await until('the application to wait', async () => (await stateOf(slug))?.state === 'waiting')
  expect(await inState('waiting')).toEqual([slug])
  release()
  await applied(sent)
  expect((await stateOf(slug))?.state).toBe('applied')
})

test('it is changed outside, with the names of the fields, once workers have compared it', async () => {
  const slug = 'state-outside'
  await applied(put(slug))
  await there.db.$executeRawUnsafe(`UPDATE applications SET group_name = 'by SQL' WHERE slug = '${slug}'`)
  await there.db.$executeRawUnsafe(
    `UPDATE providers SET settings = settings || '{"sub_mode": "user_email"}' WHERE name = '${slug}'`,
  )
  const outside = { state: 'changed_outside', changed_outside: ['group', 'provider.sub_mode'] }
  expect(await stateOf(slug)).toMatchObject(outside)
  expect(await inState('changed_outside')).toEqual([])
  const compare = () => compareAll(there.db, there.engine.registry, (error) => expect.unreachable(String(error)))
  await compare()
  expect(await stateOf(slug)).toMatchObject(outside)
  expect(await inState('changed_outside')).toEqual([slug])
  await applied(put(slug, { group: 'Monitoring' }))
  expect(await stateOf(slug)).toMatchObject({ state: 'applied', changed_outside: [] })
  await compare()
  expect(await inState('changed_outside')).toEqual([])
})

test('the tag of an application does not depend on its state', async () => {
  const slug = 'state-tag'
  await applied(put(slug))
  const path = `/api/v3/core/applications/${slug}/`
  const { etag } = await there.admin.get(path)
  await failed(() => put(slug, {}, async))
  expect((await stateOf(slug))?.state).toBe('failing')
  expect((await there.admin.get(path)).etag).toBe(etag)
  await answered(204, there.admin.delete(path, { ifMatch: etag }))
})

test('another word is refused', async () => {
  const { text } = await answered(400, there.admin.get('/api/v3/core/applications/?state=broken'))
  expect(text).toContain('applied, failing, waiting, changed_outside')
})
