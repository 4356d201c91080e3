import { expect, test } from 'vitest'
import { examine } from './faults/auditor.ts'
import type { Outcome, Sent } from './faults/clients.ts'
import { freshDatabase, rows, sql } from './support/kit.ts'

/** An auditor that never complains proves nothing. */

const { db } = await freshDatabase()

const sentPut = (slug: string, outcome: Outcome): Sent => ({
  slug,
  outcome,
  content: 'as sent',
  status: { applied: 200, nothing: 503, unknown: null }[outcome],
  text: '',
  sentAt: 0,
  ms: 1,
})

async function write(
  slug: string,
  { content = 'as sent', whole = true }: { content?: string; whole?: boolean } = {},
): Promise<void> {
  await rows(
    db,
    sql`
    INSERT INTO providers (uuid, kind, name, oauth2_client_id) VALUES (gen_random_uuid(), 'oauth2', ${slug}, ${slug})`,
  )
  await rows(
    db,
    sql`
    INSERT INTO applications (pk, name, slug, provider_pk, meta_description)
    SELECT gen_random_uuid(), 'n', ${slug}, p.pk, ${content} FROM providers p WHERE p.name = ${slug}`,
  )
  const mappings = whole ? 6 : 3
  await rows(
    db,
    sql`
    WITH mapping AS (
      INSERT INTO property_mappings (pk, name, kind) SELECT gen_random_uuid(), 'm', 'oauth2' FROM generate_series(1, ${mappings}) RETURNING pk
    )
    INSERT INTO provider_references (provider_pk, field, position, property_mapping_pk)
    SELECT p.pk, 'property_mappings', row_number() OVER (), m.pk FROM mapping m, providers p WHERE p.name = ${slug}`,
  )
}

const record = (slug: string) =>
  rows(
    db,
    sql`
    INSERT INTO runs (id, state, title, kind, request_id, blueprint, applied, logs, finished_at)
    VALUES (gen_random_uuid(), 'done', ${`apply oauth2 ${slug}`}, 'oauth2', 'r', '', true, '{}', now())`,
  )

test('every broken promise is a complaint', async () => {
  await write('kept')
  await write('open')
  expect(
    await examine(db, [sentPut('kept', 'applied'), sentPut('open', 'unknown'), sentPut('refused', 'nothing')]),
  ).toEqual([])

  await write('denied')
  await write('altered', { content: 'something else' })
  await write('torn', { whole: false })
  await write('surprise')
  await rows(db, sql`INSERT INTO providers (uuid, kind, name) VALUES (gen_random_uuid(), 'oauth2', 'half')`)
  await record('kept')
  await record('kept')
  const sent = [
    sentPut('kept', 'applied'),
    sentPut('open', 'unknown'),
    sentPut('lost', 'applied'),
    sentPut('denied', 'nothing'),
    sentPut('altered', 'applied'),
    sentPut('torn', 'applied'),
    sentPut('half', 'unknown'),
  ]
  const complaints = await examine(db, sent)
  const expected = [
    'lost was answered with 200 and is lost',
    'denied exists, though its client got',
    'altered has a content that was never sent',
    'torn is not what was sent',
    'half is half there: provider only',
    'surprise exists, and was never sent',
    'the provider half belongs to no application',
    '(done, applied true) has 0 audit rows',
    '"apply oauth2 kept" was applied 2 times, but can have been only 1 times',
  ]
  for (const text of expected) expect(complaints).toContainEqual(expect.stringContaining(text))
})
