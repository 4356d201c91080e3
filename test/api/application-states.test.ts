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

async function stateOf(slug: string): Promise<State | null> {
  const { json } = await answered(200, there.admin.get(`/api/v3/core/applications/${slug}/history/`))
  return (json as { state: State | null }).state
}

const inState = async (state: string) => {
  const { json } = await there.admin.get(`/api/v3/core/applications/?state=${state}&page_size=100`)
  return (json as { results: { slug: string }[] }).results.map(({ slug }) => slug)
}

const put = (slug: string, app: Record<string, unknown> = {}, prefer = '') =>
  there.admin.submit('oauth2', slug, { app, ...(prefer !== '' && { prefer }) })

const entry = (slug: string) => ({ model: 'service_core.application', identifiers: { slug }, attrs: { name: slug } })

/** A run that is cancelled while it waits. */
async function cancelled(submit: () => Promise<Answer>): Promise<void> {
  const release = there.hold()
  const { run } = await answered(202, submit())
  await answered(200, there.admin.post(`${run}cancel/`))
  release()
}

test('it is failing since the first run that was not applied, until one is', async () => {
  const slug = 'state-failing'
  await applied(put(slug))
  expect(await stateOf(slug)).toMatchObject({ state: 'applied', failing_since: null, failing_reason: null })
  const change = () => put(slug, { group: 'New' }, 'respond-async')
  await cancelled(change)
  const first = await stateOf(slug)
  expect(first).toMatchObject({ state: 'failing', failing_since: expect.any(String), failing_reason: 'cancelled' })
  await cancelled(change)
  expect(await stateOf(slug)).toEqual(first)
  expect(await inState('failing')).toContain(slug)
  expect(await inState('applied')).not.toContain(slug)
  await applied(put(slug))
  expect(await stateOf(slug)).toMatchObject({ state: 'applied', failing_since: null, failing_reason: null })
})

test('a document says it of all applications that it names, and a plan of none', async () => {
  const slugs = ['state-set-one', 'state-set-two']
  const entries = slugs.map(entry)
  await applied(there.admin.apply(entries))
  await cancelled(() => there.admin.plan(entries, { prefer: 'respond-async' }))
  for (const slug of slugs) expect(await stateOf(slug)).toMatchObject({ state: 'applied' })
  await cancelled(() => there.admin.apply(entries, { prefer: 'respond-async' }))
  for (const slug of slugs) expect(await stateOf(slug)).toMatchObject({ state: 'failing' })
  await applied(there.admin.apply([entry('state-set-one')]))
  expect((await stateOf('state-set-one'))?.state).toBe('applied')
  expect((await stateOf('state-set-two'))?.state).toBe('failing')
})

test('it waits while a run that names it has not ended', async () => {
  const slug = 'state-waiting'
  await applied(put(slug))
  const release = there.hold()
  const sent = put(slug, { group: 'New' })
  await until(async () => (await stateOf(slug))?.state === 'waiting', { what: 'the application to wait' })
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
  const compare = () => compareAll(there.db, there.engine.registry, (error) => expect.unreachable(String(error)))
  await compare()
  expect(await stateOf(slug)).toMatchObject({
    state: 'changed_outside',
    changed_outside: ['group', 'provider.sub_mode'],
  })
  expect(await inState('changed_outside')).toEqual([slug])
  await applied(put(slug, { group: 'Monitoring' }))
  await compare()
  expect(await stateOf(slug)).toMatchObject({ state: 'applied', changed_outside: [] })
})

test('the tag of an application does not depend on its state', async () => {
  const slug = 'state-tag'
  await applied(put(slug))
  const path = `/api/v3/core/applications/${slug}/`
  const { etag } = await there.admin.get(path)
  await cancelled(() => put(slug, {}, 'respond-async'))
  expect((await stateOf(slug))?.state).toBe('failing')
  expect((await there.admin.get(path)).etag).toBe(etag)
  await answered(204, there.admin.delete(path, { ifMatch: etag }))
})

test('another word is refused', async () => {
  const { status, text } = await there.admin.get('/api/v3/core/applications/?state=broken')
  expect(status).toBe(400)
  expect(text).toContain('applied, failing, waiting, changed_outside')
})
