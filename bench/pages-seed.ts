import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { runFormat } from '../src/runs/format.ts'
import type { Size } from '../tools/seed/organisation.ts'
import { seed } from '../tools/seed/seed.ts'
import { withoutIndexes } from './bulk.ts'

/** A large ledger, written past the service: runs of every outcome with their audit rows and histories, by INSERT ... SELECT. */

/** Days over which the runs lie: as many as the product keeps them. */
const days = 90

type Seeding = {
  readonly url: string
  readonly secretKey: string
  readonly runs: number
  /** The size of the organisation whose applications the runs are about. */
  readonly size: Size
  readonly say: (text: string) => void
}

/**
 * Fills an installation that has been started once and does not run; of one that is filled already, only the time since
 * then.
 */
export async function seedLedger(seeding: Seeding): Promise<void> {
  const client = new pg.Client({ connectionString: seeding.url, statement_timeout: 0 })
  await client.connect()
  try {
    const { rows } = await client.query<{ last: Date | null }>('SELECT max(created_at) AS last FROM runs')
    const last = rows[0]?.last ?? null
    if (last === null) {
      await withoutIndexes(client, () => fillLedger(client, seeding), seeding.say)
      seeding.say('vacuum')
      await client.query('VACUUM (ANALYZE)')
    } else await addSince(client, seeding, last)
  } finally {
    await client.end()
  }
}

const gapOf = ({ runs }: Seeding): number => (days * 86_400) / runs

async function addSince(client: pg.Client, seeding: Seeding, from: Date): Promise<void> {
  const gapS = gapOf(seeding)
  const missing = Math.floor((Date.now() - from.getTime()) / 1_000 / gapS)
  seeding.say(`${missing} runs since the last time`)
  await prepare(client)
  await addRuns(client, { count: missing, gapS, from })
  await client.query(fullRefusals)
}

/** Writes an organisation, its applications' histories and the runs. What the planner must know of them is left to the caller. */
export async function fillLedger(client: pg.Client, seeding: Seeding): Promise<void> {
  const { url, secretKey, runs, size, say } = seeding
  const progress = { begin: (step: string) => say(`seed: ${step}`), progress() {}, end() {}, note() {} }
  await seed({ seed: 1, size, url, secretKey }, progress)
  await client.query(ownersOfApplications)
  say('histories of applications')
  await client.query(historiesOfApplications)
  await prepare(client)
  const from = new Date(Date.now() - days * 86_400_000)
  const gapS = gapOf(seeding)
  const portion = 100_000
  for (let done = 0; done < runs; done += portion) {
    say(`runs from ${done} on`)
    const count = Math.min(portion, runs - done)
    await addRuns(client, { count, gapS, from: new Date(from.getTime() + done * gapS * 1_000) })
  }
  await addLargeRun(client)
  await client.query(fullRefusals)
}

/** Nine of ten have one, of 200 teams: of some many, of most few. */
const ownersOfApplications = `UPDATE applications SET owner = 'team-' || floor(200 * power(random(), 3))::integer
  WHERE random() < 0.9`

/** One audit row for each application, as if each had been made by a document of its own. */
const historiesOfApplications = `INSERT INTO audit_rows (at, actor_pk, actor_name, action, changes, objects, request_id)
  SELECT now() - interval '${days + 1} days', 1, 'admin', 'apply', jsonb_build_array(jsonb_build_object(
      'model', 'service_core.application', 'key', pk, 'action', 'create', 'fields', '["name", "slug"]'::jsonb,
      'object', jsonb_build_object('name', slug, 'owner', owner,
        'fields', jsonb_build_object('slug', jsonb_build_object('from', null, 'to', slug))))),
    ARRAY['service_core.application ' || pk, 'service_core.application=' || slug], gen_random_uuid()
  FROM applications`

/** The most that are kept, all of the last two hours. */
const fullRefusals = `WITH gone AS (DELETE FROM refusals)
  INSERT INTO refusals (at, route, code, status, user_pk, username, request_id, title, sentence)
  SELECT now() - make_interval(secs => 7.2 * (1000 - i)), '/api/v3/core/transactional/applications/',
    (ARRAY['invalid', 'permission_denied', 'conflict', 'precondition_failed'])[1 + i % 4], (ARRAY[400, 403, 409, 412])[1 + i % 4],
    u.pk, u.username, gen_random_uuid()::text, 'apply oauth2 shop-' || i,
    'application "shop-' || i || '" belongs to owner "team-9" (made by alice), and the request names no owner'
  FROM generate_series(1, 1000) i JOIN (SELECT row_number() OVER (ORDER BY pk) AS n, pk, username FROM users LIMIT 50) u ON u.n = 1 + i % 50`

/** What runs are made from: applications by number, submitters by weight, and a text that does not compress. */
async function prepare(client: pg.Client): Promise<void> {
  await client.query(`CREATE TEMPORARY TABLE apps AS
    SELECT (row_number() OVER (ORDER BY a.pk))::integer AS n, a.pk, a.slug, a.owner, coalesce(p.kind, 'oauth2') AS kind,
      coalesce(p.name, a.slug) AS provider FROM applications a LEFT JOIN providers p ON p.pk = a.provider_pk`)
  await client.query('CREATE UNIQUE INDEX ON apps (n)')
  await client.query(`CREATE TEMPORARY TABLE submitters AS
    SELECT (row_number() OVER (ORDER BY pk))::integer AS n, pk, username FROM (SELECT pk, username FROM users ORDER BY pk LIMIT 60) u`)
  await client.query(`CREATE TEMPORARY TABLE noise AS SELECT $1::text AS text`, [
    randomBytes(60_000).toString('base64'),
  ])
  await client.query('ANALYZE apps; ANALYZE submitters; SET synchronous_commit = off')
}

type Portion = { readonly count: number; readonly gapS: number; readonly from: Date }

/** 80 of a hundred change nothing, 15 something; 2.5 are refused, 1 fails, half of one is cancelled, one is a plan. */
const addRuns = (client: pg.Client, { count, gapS, from }: Portion) =>
  client.query(
    `WITH numbers AS MATERIALIZED (
      SELECT $3::timestamptz + make_interval(secs => (i - random()) * $2::float8) AS at, random() AS what, random() AS who,
        1 + floor((SELECT count(*) FROM apps) * power(random(), 2))::integer AS app, floor(random() * 78000)::integer AS noise,
        floor(random() * 25)::integer AS cause, gen_random_uuid()::text AS id
      FROM generate_series(1, $1::integer) i
    ), facts AS MATERIALIZED (
      SELECT n.*, a.slug, a.kind, a.owner, a.pk AS "appPk", a.provider, s.pk AS submitter, s.username,
        CASE WHEN what < 0.8 THEN 'unchanged' WHEN what < 0.95 THEN 'update' WHEN what < 0.975 THEN 'refused'
          WHEN what < 0.985 THEN 'failed' WHEN what < 0.99 THEN 'cancelled' ELSE 'plan' END AS outcome,
        (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(n.id, 16, 3) || substr(n.id, 20))::uuid AS run
      FROM numbers n JOIN apps a ON a.n = n.app
        JOIN submitters s ON s.n = CASE WHEN who < 0.7 THEN 2 ELSE 3 + floor((who - 0.7) * 190)::integer END
    ), made AS (
      INSERT INTO runs (id, state, mode, title, kind, slug, submitter_pk, request_id, blueprint, document, options, enqueued_at,
        created_at, started_at, finished_at, applied, reason, logs, cause, changes, format,
        changed_in)
      SELECT run, (CASE WHEN outcome IN ('failed', 'cancelled') THEN outcome ELSE 'done' END)::run_state,
        (CASE outcome WHEN 'plan' THEN 'plan' ELSE 'apply' END)::run_mode,
        (CASE outcome WHEN 'plan' THEN 'plan' ELSE 'apply' END) || ' ' || kind || ' ' || slug, kind, slug, submitter,
        gen_random_uuid()::text, CASE WHEN what > 0.75 THEN substr(noise.text, f.noise, 1600) END,
        CASE WHEN what < 0.95 THEN decode(md5(slug), 'hex') END,
        CASE WHEN owner IS NULL THEN '{"createOnly":false,"expectedKeys":{}}'::jsonb
          ELSE jsonb_build_object('createOnly', false, 'expectedKeys', '{}'::jsonb, 'owner', owner) END,
        at, at, CASE WHEN outcome <> 'cancelled' THEN at + make_interval(secs => 0.002 + who * 0.02) END,
        at + make_interval(secs => 0.006 + who * 0.04), outcome IN ('unchanged', 'update'),
        CASE outcome WHEN 'refused' THEN 'conflict' WHEN 'failed' THEN 'server_error' WHEN 'cancelled' THEN 'cancelled' END,
        CASE WHEN outcome = 'unchanged' THEN ARRAY['provider ' || kind || ' "' || provider || '" unchanged', 'application "' || slug || '" unchanged']
          WHEN outcome = 'cancelled' THEN ARRAY['not applied: no worker took it in time']
          WHEN outcome = 'failed' THEN ARRAY['not applied: the service failed']
          WHEN outcome = 'refused' THEN ARRAY['not applied: application "' || slug || '" belongs to owner "team-9" (made by alice), and the request names no owner']
          ELSE ARRAY['provider ' || kind || ' "' || provider || '" unchanged', 'application "' || slug || '" updated: meta_description'] END,
        CASE outcome WHEN 'failed' THEN 'could not extend file "base/16384/' || cause || '": No space left on device (53100)' END,
        CASE WHEN outcome IN ('unchanged', 'update', 'plan') THEN jsonb_build_array(
          jsonb_build_object('model', 'service_core.provider', 'key', jsonb_build_object('name', provider), 'action', 'unchanged', 'fields', '{}'::jsonb),
          jsonb_build_object('model', 'service_core.application', 'key', jsonb_build_object('slug', slug),
            'action', CASE outcome WHEN 'unchanged' THEN outcome ELSE 'update' END, 'fields', CASE outcome WHEN 'unchanged' THEN '{}'::jsonb
              ELSE '{"meta_description": {"from": "before", "to": "afterwards"}}'::jsonb END)) END, $4::smallint, NULL
      FROM facts f, noise RETURNING id
    )
    INSERT INTO audit_rows (at, actor_pk, actor_name, action, changes, objects, request_id, run_id)
    SELECT at, submitter, username, 'apply', CASE outcome WHEN 'update' THEN jsonb_build_array(jsonb_build_object('model',
        'service_core.application', 'key', "appPk", 'action', 'update', 'fields', '["meta_description"]'::jsonb,
        'object', jsonb_build_object('name', slug, 'owner', owner, 'change', 1))) ELSE '[]'::jsonb END,
      CASE outcome WHEN 'update' THEN ARRAY['service_core.application ' || "appPk", 'service_core.application=' || slug] END,
      gen_random_uuid(), run
    FROM facts WHERE outcome IN ('unchanged', 'update') ORDER BY at`,
    [count, gapS, from, runFormat],
  )

/** One document of 10 000 entries, half of which change something, a minute ago. */
const addLargeRun = (client: pg.Client) =>
  client.query(`INSERT INTO runs (id, state, title, submitter_pk, request_id, applied, started_at, finished_at, logs, changes)
    SELECT gen_random_uuid(), 'done', 'apply blueprint everything', 1, gen_random_uuid()::text, true, now(), now(),
      array_agg('application "many-' || i || '" updated: meta_description'), jsonb_agg(jsonb_build_object('model', 'service_core.application',
        'key', jsonb_build_object('slug', 'many-' || i), 'action', CASE WHEN i % 2 = 0 THEN 'update' ELSE 'unchanged' END,
        'fields', CASE WHEN i % 2 = 0 THEN '{"meta_description": {"from": "before", "to": "afterwards"}, "meta_publisher": {"from": "", "to": "someone"}}'::jsonb
          ELSE '{}'::jsonb END))
    FROM generate_series(1, 10000) i`)
