import type { Db } from '../../src/db/client.ts'
import { rows, sql } from '../support/sql.ts'
import { until } from '../support/until.ts'
import type { Sent } from './clients.ts'
import { recordAudit } from './record.ts'

type Application = {
  slug: string
  content: string
  provider: string | null
  clientId: string | null
  references: number
}
type AppliedRun = { title: string; rows: number }

/** References of the submission that the clients send: five property mappings and a signing key. */
const referencesEach = 6
/** Longer than the reconciler takes until the last attempt of a run. */
const settledWithinMs = 20_000

/**
 * Compares the answers to clients with the database, after all runs have ended.
 *
 * @param log every PUT that was sent to this installation
 * @returns a sentence for each broken promise
 */
export async function audit(db: Db, log: readonly Sent[]): Promise<string[]> {
  const complaints = await examine(db, log)
  recordAudit(log, complaints)
  return complaints
}

/** The same, without a line in the table of `npm run faults`. */
export async function examine(db: Db, log: readonly Sent[]): Promise<string[]> {
  const complaints: string[] = []
  await noRunQueued(db).catch((error: unknown) => complaints.push(String(error)))
  const applications = Map.groupBy(await readApplications(db), ({ slug }) => slug)
  const providers = new Set((await rows<{ name: string }>(db, sql`SELECT name FROM providers`)).map(({ name }) => name))
  for (const [slug, sent] of Map.groupBy(log, (each) => each.slug)) {
    const found = applications.get(slug) ?? []
    complaints.push(...complaintsAbout(slug, sent, found, providers.has(slug)))
  }
  const sentSlugs = new Set(log.map(({ slug }) => slug))
  for (const slug of applications.keys())
    if (!sentSlugs.has(slug)) complaints.push(`${slug} exists, and was never sent`)
  complaints.push(...(await orphans(db)), ...(await unaudited(db)), ...doubled(log, await readAppliedRuns(db)))
  complaints.push(
    ...log.filter(({ status }) => status === 500).map(({ slug, text }) => `${slug} was answered with 500: ${text}`),
  )
  return complaints
}

function complaintsAbout(
  slug: string,
  sent: readonly Sent[],
  found: readonly Application[],
  hasProvider: boolean,
): string[] {
  const applied = sent.filter(({ outcome }) => outcome === 'applied')
  const mayExist = sent.filter(({ outcome }) => outcome !== 'nothing')
  const [application] = found
  const half = (application !== undefined) !== hasProvider
  if (half) return [`${slug} is half there: ${application === undefined ? 'provider' : 'application'} only`]
  if (found.length > 1) return [`${slug} exists ${found.length} times`]
  if (application === undefined) return applied.length === 0 ? [] : [`${slug} was answered with 200 and is lost`]
  if (mayExist.length === 0)
    return [`${slug} exists, though its client got: ${sent.map(({ status, text }) => `${status} ${text}`).join(' | ')}`]
  const { provider, clientId, references, content } = application
  const isWhole = provider === slug && clientId === slug && references === referencesEach
  if (!isWhole) return [`${slug} is not what was sent: ${JSON.stringify(application)}`]
  return mayExist.some((each) => each.content === content)
    ? []
    : [`${slug} has a content that was never sent: ${content}`]
}

const readApplications = (db: Db) =>
  rows<Application>(
    db,
    sql`
    SELECT a.slug, a.meta_description AS content, p.name AS provider, p.oauth2_client_id AS "clientId",
      (SELECT count(*) FROM provider_references r WHERE r.provider_pk = p.pk) AS references
    FROM applications a LEFT JOIN providers p ON p.pk = a.provider_pk`,
  )

async function noRunQueued(db: Db): Promise<void> {
  const queued = async () => {
    const [row] = await rows<{ queued: number }>(db, sql`SELECT count(*) AS queued FROM runs WHERE state = 'queued'`)
    return row?.queued
  }
  await until('no run to be queued any more', async () => (await queued()) === 0, {
    withinMs: settledWithinMs,
    everyMs: 100,
  })
}

async function orphans(db: Db): Promise<string[]> {
  const found = await rows<{ name: string }>(
    db,
    sql`
    SELECT name FROM providers p WHERE NOT EXISTS (SELECT FROM applications a WHERE a.provider_pk = p.pk)`,
  )
  return found.map(({ name }) => `the provider ${name} belongs to no application`)
}

/** Effect and record are committed together: each applied run has one audit row, and no other run has one. */
async function unaudited(db: Db): Promise<string[]> {
  const found = await rows<{ run: string; state: string | null; applied: boolean | null; audits: number }>(
    db,
    sql`
    WITH audits AS (SELECT run_id, count(*) AS rows FROM audit_rows WHERE action = 'apply' GROUP BY run_id)
    SELECT coalesce(r.id, a.run_id) AS run, r.state, r.applied, coalesce(a.rows, 0) AS audits
    FROM runs r FULL JOIN audits a ON a.run_id = r.id
    WHERE coalesce(a.rows, 0) <> CASE WHEN r.state = 'done' AND r.applied THEN 1 ELSE 0 END`,
  )
  return found.map(
    ({ run, state, applied, audits }) => `the run ${run} (${state}, applied ${applied}) has ${audits} audit rows`,
  )
}

const readAppliedRuns = (db: Db) =>
  rows<AppliedRun>(db, sql`SELECT title, count(*) AS rows FROM runs WHERE applied GROUP BY title`)

/** No more runs were applied than PUTs were sent. */
function doubled(log: readonly Sent[], runs: readonly AppliedRun[]): string[] {
  const possible = Map.groupBy(log, ({ slug }) => `apply oauth2 ${slug}`)
  return runs.flatMap(({ title, rows }) => {
    const sent = (possible.get(title) ?? []).filter(({ outcome }) => outcome !== 'nothing').length
    return rows > sent ? [`"${title}" was applied ${rows} times, but can have been only ${sent} times`] : []
  })
}
