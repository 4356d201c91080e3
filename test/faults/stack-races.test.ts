import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { rows, sql, within } from '../support/kit.ts'
import { submission } from './clients.ts'
import { recordCalls } from './record.ts'
import { applyPath, blueprintsPath, type Got, isApplied, send } from './requests.ts'
import { openStand, type Stand } from './stand.ts'
import { seeded } from './supervisor.ts'

/**
 * A document that deletes what is left over in its stack, beside what changes these rows. Each round has a stack with three
 * applications a, b and c, of which the document names a; another request renames, takes over or deletes b at the same time.
 */

const rounds = 100
/** Each of the two is first in some rounds. */
const apartMs = 40
const heldMs = 300
const seed = 34

type Row = { readonly slug: string; readonly pk: string; readonly provider: number }
type Round = { readonly stand: Stand; readonly owner: string; readonly other: string; nameOf(each: string): string }

const names = ['a', 'b', 'c']
const blueprint = (entries: readonly object[], members: object = {}) => ({
  version: 1,
  metadata: { name: 'race' },
  entries,
  ...members,
})
const application = (slug: string, members: object = {}) => ({
  model: 'service_core.application',
  identifiers: { slug },
  ...members,
})
const ownedBy = (owner: string) => ({ 'gatewright-owner': owner })
const takingOver = (owner: string) => ({
  ...ownedBy(owner),
  'gatewright-stack': owner,
  'gatewright-allow': 'takeover',
})

/** What another request does to b. */
const others: Readonly<Record<string, (round: Round) => Promise<Got>>> = {
  'a rename': ({ stand, owner, nameOf }) => {
    const renamed = application(nameOf('new'), { was: nameOf('b'), attrs: { name: 'Renamed' } })
    return send(stand, 'PUT', blueprintsPath, { headers: ownedBy(owner), body: blueprint([renamed]) })
  },
  'a rename by another owner': ({ stand, other, nameOf }) => {
    const renamed = application(nameOf('new'), { was: nameOf('b'), attrs: { name: 'Renamed' } })
    return send(stand, 'PUT', blueprintsPath, { headers: takingOver(other), body: blueprint([renamed]) })
  },
  'a takeover': ({ stand, other, nameOf }) => {
    const body = submission(nameOf('b'), 'taken over')
    return send(stand, 'PUT', applyPath, { headers: takingOver(other), body })
  },
  'a DELETE with its provider': ({ stand, owner, nameOf }) =>
    send(stand, 'DELETE', `/core/applications/${nameOf('b')}/?with_provider=true`, { headers: ownedBy(owner) }),
  'a DELETE with its provider by another owner': ({ stand, other, nameOf }) =>
    send(stand, 'DELETE', `/core/applications/${nameOf('b')}/?with_provider=true`, {
      headers: { ...ownedBy(other), 'gatewright-allow': 'takeover' },
    }),
}

/** How the four deletions were acknowledged. */
const acknowledged: Readonly<Record<string, (planned: Got) => Record<string, string>>> = {
  'by a reviewed plan': ({ headers }) => ({
    'if-match': headers.get('etag') ?? '',
    'gatewright-allow': 'deletes=4',
  }),
  'by their number, with takeover': () => ({ 'gatewright-allow': 'deletes=4, takeover' }),
}

const applicationsNow = ({ db }: Stand, keys: readonly string[]) =>
  rows<Row>(
    db,
    sql`SELECT slug, pk::text AS pk, provider_pk AS provider FROM applications WHERE pk::text = ANY(${[...keys]})`,
  )

async function providersNow({ db }: Stand, keys: readonly number[]): Promise<Set<number>> {
  const found = await rows<{ pk: number }>(db, sql`SELECT pk FROM providers WHERE pk = ANY(${[...keys]}::integer[])`)
  return new Set(found.map(({ pk }) => pk))
}

/** @returns a sentence for each broken promise */
function complaintsAbout(
  made: readonly Row[],
  after: { readonly applications: readonly Row[]; readonly providers: ReadonlySet<number> },
  { deleted, slugOf }: { readonly deleted: boolean; slugOf(row: Row): string },
): string[] {
  const there = new Map(after.applications.map((row) => [row.pk, row]))
  return made.flatMap((row) => {
    const now = there.get(row.pk)
    const name = slugOf(row)
    const provider = after.providers.has(row.provider)
    if (now !== undefined && (!provider || now.provider !== row.provider)) return [`${name} lost its provider`]
    if (now === undefined && provider) return [`the provider of ${name} was left without it`]
    if (name === 'a' && now === undefined) return ['a, which the document names, is gone']
    // All of what was acknowledged goes, or nothing: c is changed by nothing else.
    if (name === 'c' && (now === undefined) !== deleted) return [`c is ${now === undefined ? 'gone' : 'there'} by half`]
    if (deleted && name === 'b' && now !== undefined) return ['b was left by a deletion of four rows']
    return []
  })
}

/**
 * Keeps b locked until both requests wait for it, each as far as it comes. An API waits for a lock for half a second only.
 */
async function atLock(stand: Stand, slug: string, begin: () => [Promise<Got>, Promise<Got>]): Promise<[Got, Got]> {
  const both = await within(stand.databaseUrl, async (client) => {
    await client.query('BEGIN')
    await client.query('SELECT FROM applications WHERE slug = $1 FOR UPDATE', [slug])
    const begun = Promise.all(begin())
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
    const endsAt = performance.now() + heldMs
    while (performance.now() < endsAt && (await client.query(waiting)).rowCount !== 2) await delay(5)
    await client.query('ROLLBACK')
    return { begun }
  })
  return both.begun
}

async function play(round: Round, other: string, how: string, random: () => number): Promise<[Got, Got, string[]]> {
  const { stand, owner, nameOf } = round
  const list = names.map((each) => submission(nameOf(each), 'as made'))
  const own = { ...ownedBy(owner), 'gatewright-stack': owner }
  const created = await send(stand, 'PUT', blueprintsPath, { headers: own, body: list })
  expect(isApplied(created), created.text).toBe(true)
  const slugs = names.map(nameOf)
  const made = await rows<Row>(
    stand.db,
    sql`SELECT slug, pk::text AS pk, provider_pk AS provider FROM applications WHERE slug = ANY(${slugs})`,
  )
  // The provider of a is a member, too.
  const provider = { model: 'service_providers_oauth2.oauth2provider', identifiers: { name: nameOf('a') } }
  const body = blueprint([application(nameOf('a')), provider])
  const planned = await send(stand, 'PUT', `${blueprintsPath}?dry_run=true`, { headers: own, body })
  const headers = { ...own, ...acknowledged[how]?.(planned) }
  const [deleted, changed] = await atLock(stand, nameOf('b'), () => [
    delay(random() * apartMs).then(() => send(stand, 'PUT', blueprintsPath, { headers, body })),
    delay(random() * apartMs).then(() => others[other]?.(round) ?? expect.fail(other)),
  ])
  const after = {
    applications: await applicationsNow(
      stand,
      made.map(({ pk }) => pk),
    ),
    providers: await providersNow(
      stand,
      made.map(({ provider }) => provider),
    ),
  }
  const slugOf = ({ slug }: Row) => slug.split('-').at(-1) ?? slug
  const complaints = complaintsAbout(made, after, { deleted: isApplied(deleted), slugOf })
  const [found] = await rows<{ count: number }>(
    stand.db,
    sql`SELECT count(*) AS count FROM applications WHERE slug = ${nameOf('b')} AND owner = ${round.other}`,
  )
  if (other === 'a takeover' && isApplied(changed) && found?.count !== 1)
    complaints.push('b was taken over, and is gone')
  return [
    deleted,
    changed,
    complaints.map((each) => `${owner}, ${other}, ${how}: ${each} (${deleted.text} | ${changed.text})`),
  ]
}

test(`left-overs of a stack beside renames, takeovers and DELETEs, of one owner and of two, ${rounds} rounds: what was planned goes, or nothing`, {
  timeout: 120_000,
}, async () => {
  const stand = await openStand('postgres')
  const worker = await stand.startWorker()
  const random = seeded(seed)
  const cases = Object.keys(others).flatMap((other) => Object.keys(acknowledged).map((how) => [other, how] as const))
  const complaints: string[] = []
  const got: Got[] = []
  const deleting: Got[] = []
  for (let played = 0; played < rounds; played += 1) {
    const owner = `team${played}`
    const round = { stand, owner, other: `${owner}x`, nameOf: (each: string) => `${owner}-${each}` }
    const [other, how] = cases[played % cases.length] ?? expect.fail('no case')
    const [deleted, changed, broken] = await play(round, other, how, random)
    deleting.push(deleted)
    got.push(deleted, changed)
    complaints.push(...broken)
  }
  recordCalls(got, { half: complaints.length })
  const applied = deleting.filter(isApplied).length
  console.log(`stack: ${applied} of ${rounds} were applied, the others refused`)
  expect(complaints).toEqual([])
  expect(got.filter(({ status }) => status === null || status >= 500).map(({ text }) => text)).toEqual([])
  // Each of the two was first often enough to prove something.
  expect(applied).toBeGreaterThan(rounds / 10)
  expect(applied).toBeLessThan(rounds - rounds / 10)
  await worker.stop()
})
