import { expect, test } from 'vitest'
import { answered, applyPath, execute, installation, named, sql } from '../support/kit.ts'

/** Patterns of redirect URIs that an earlier version accepted, and that are refused now. */

const there = await installation()

const older = [{ matching_mode: 'regex', url: '^.*$' }]
const storeOlder = (name: string) =>
  execute(
    there.db,
    sql`UPDATE providers SET settings = settings || ${JSON.stringify({ redirect_uris: older })}::text::jsonb WHERE name = ${name}`,
  )

test('are read, and kept by a submission that does not name them; one that names them is refused', async () => {
  const { app, provider_model, provider } = await named('oauth2', 'older')
  const { redirect_uris: _, ...others } = provider
  expect((await there.admin.put(applyPath, { app, provider_model, provider })).status).toBe(200)
  await storeOlder('older')
  const stored = async () => {
    const read = await answered(200, there.admin.get('/api/v3/providers/oauth2/older/'))
    return read.json
  }
  expect(await stored()).toMatchObject({ redirect_uris: older })
  const changed = { ...others, access_code_validity: 'minutes=7' }
  expect((await there.admin.put(applyPath, { app, provider_model, provider: changed })).status).toBe(200)
  expect(await stored()).toMatchObject({ redirect_uris: older, access_code_validity: 'minutes=7' })
  const entry = { model: provider_model, identifiers: { name: 'older' }, attrs: { sub_mode: 'user_email' } }
  const document = { version: 1, metadata: { name: 'older' }, entries: [entry] }
  expect((await there.admin.put('/api/v3/blueprints/', document)).status).toBe(200)
  expect(await stored()).toMatchObject({ redirect_uris: older, sub_mode: 'user_email' })
  const again = await there.admin.put(applyPath, {
    app,
    provider_model,
    provider: { ...changed, redirect_uris: older },
  })
  expect(again.status).toBe(400)
  const error = expect.stringContaining('such as https://app')
  expect(again.json).toMatchObject({ provider: { redirect_uris: { 0: { url: [error] } } } })
})
