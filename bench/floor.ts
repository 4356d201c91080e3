import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { uuid7 } from '../src/ids.ts'
import { type Load, measure } from './measure.ts'

/**
 * The floor, as a process: the rows of one apply, written by hand in one transaction, without a queue, a check or a
 * second process. Nothing that does the same durably on this machine can be faster; the rest is what the product costs.
 */

/** `like` is the slug of an application that was applied: its rows are copied under new names. */
export type FloorTask = Load & { readonly database: string; readonly prefix: string; readonly like: string }

const { database, prefix, like, ...load }: FloorTask = JSON.parse(process.argv[2] ?? '')
const pool = new pg.Pool({ connectionString: database, max: load.clients })

type Rows = Readonly<Record<'provider' | 'application' | 'run' | 'audit', Record<string, unknown>>> & {
  readonly mirrored: unknown[]
}

const { rows } = await pool.query<Rows>(
  `SELECT to_jsonb(p) AS provider, to_jsonb(a) AS application, to_jsonb(r) AS run, to_jsonb(w) AS audit,
     (SELECT jsonb_agg(m) FROM provider_references m WHERE m.provider_pk = p.pk) AS mirrored
   FROM applications a JOIN providers p ON p.pk = a.provider_pk
   JOIN runs r ON r.title LIKE '%' || a.slug JOIN audit_rows w ON w.run_id = r.id
   WHERE a.slug = $1`,
  [like],
)
const [model] = rows
if (model === undefined) throw new Error(`no application ${like} to copy`)
const { provider: p, application: a, run: r, audit, mirrored } = model

const insertProvider = `
  WITH made AS (
    INSERT INTO providers (uuid, kind, name, authentication_flow, authorization_flow, invalidation_flow, oauth2_client_id, settings, secrets)
    VALUES ($1, $2, $3::text, $4, $5, $6, $3::text, $7, $8) RETURNING pk
  ), mirror AS (
    INSERT INTO provider_references (provider_pk, member, position, property_mapping_pk, certificate_key_pair_pk, group_pk)
    SELECT made.pk, m.member, m.position, m.property_mapping_pk, m.certificate_key_pair_pk, m.group_pk
    FROM made, jsonb_to_recordset($9::jsonb)
      AS m(member text, position integer, property_mapping_pk uuid, certificate_key_pair_pk uuid, group_pk uuid)
  ) SELECT pk FROM made`

const insertApplication = `
  INSERT INTO applications (pk, name, slug, provider_pk, open_in_new_tab, meta_launch_url, meta_description, meta_publisher, policy_engine_mode, group_name)
  VALUES ($1, $2::text, $2::text, $3, $4, $5, $6, $7, $8, $9)`

const insertRun = `
  WITH made AS (
    INSERT INTO runs (id, state, title, submitter_pk, request_id, blueprint, options, started_at, finished_at, applied, logs)
    VALUES ($1, 'done', $2, $3, $4, $5, $6, now(), now(), true, $7)
  )
  INSERT INTO audit_rows (actor_pk, actor_name, action, changes, request_id, run_id) VALUES ($3, $8, 'apply', $9, $4, $1)`

const json = (value: unknown) => JSON.stringify(value)

const flows = [p.authentication_flow, p.authorization_flow, p.invalidation_flow]
const members = [
  a.open_in_new_tab,
  a.meta_launch_url,
  a.meta_description,
  a.meta_publisher,
  a.policy_engine_mode,
  a.group_name,
]

async function write(name: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const made = await client.query<{ pk: number }>({
      name: 'provider',
      text: insertProvider,
      values: [randomUUID(), p.kind, name, ...flows, json(p.settings), json(p.secrets), json(mirrored)],
    })
    await client.query({
      name: 'application',
      text: insertApplication,
      values: [uuid7(), name, made.rows[0]?.pk, ...members],
    })
    await client.query({
      name: 'run',
      text: insertRun,
      values: [
        uuid7(),
        r.title,
        r.submitter_pk,
        randomUUID(),
        r.blueprint,
        json(r.options),
        r.logs,
        audit.actor_name,
        json(audit.changes),
      ],
    })
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}

console.log(JSON.stringify(await measure(load, (number) => write(`${prefix}-${number}`))))
await pool.end()
