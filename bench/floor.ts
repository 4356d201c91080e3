import { randomUUID } from 'node:crypto'
import { connect, transaction } from '../src/db/client.ts'
import { uuid7 } from '../src/ids.ts'
import { type Load, measure } from './measure.ts'

/**
 * Two floors, as a process: the rows of one apply in one transaction, without HTTP, queue, checks or a second process.
 * `pg` shows the least that a durable write costs on this machine, an interactive transaction of Prisma the least that
 * the stack costs. The rest is the cost of the product.
 */

/** `like`: the slug of an applied application. Its rows are copied under new names. */
export type FloorTask = Load & {
  readonly database: string
  readonly prefix: string
  readonly like: string
  readonly through: 'pg' | 'prisma'
}

const { database, prefix, like, through, ...load }: FloorTask = JSON.parse(process.argv[2] ?? '')
const { db, pool } = connect(database, { applicationName: 'bench-floor', max: load.clients })

type Rows = Readonly<Record<'provider' | 'application' | 'run' | 'audit', Record<string, unknown>>> & {
  readonly references: unknown[]
}

const { rows } = await pool.query<Rows>(
  `SELECT to_jsonb(p) AS provider, to_jsonb(a) AS application, to_jsonb(r) AS run, to_jsonb(w) AS audit,
     (SELECT jsonb_agg(m) FROM provider_references m WHERE m.provider_pk = p.pk) AS references
   FROM applications a JOIN providers p ON p.pk = a.provider_pk
   JOIN runs r ON r.title LIKE '%' || a.slug JOIN audit_rows w ON w.run_id = r.id
   WHERE a.slug = $1`,
  [like],
)
const [model] = rows
if (model === undefined) throw new Error(`no application ${like} to copy`)
const { provider: p, application: a, run: r, audit, references } = model

const insertProvider = `
  WITH made AS (
    INSERT INTO providers (uuid, kind, name, authentication_flow, authorization_flow, invalidation_flow, oauth2_client_id, settings, secrets)
    VALUES ($1::uuid, $2, $3::text, $4::uuid, $5::uuid, $6::uuid, $3::text, $7::jsonb, $8::jsonb) RETURNING pk
  ), links AS (
    INSERT INTO provider_references (provider_pk, field, position, property_mapping_pk, certificate_key_pair_pk, group_pk)
    SELECT made.pk, m.field, m.position, m.property_mapping_pk, m.certificate_key_pair_pk, m.group_pk
    FROM made, jsonb_to_recordset($9::jsonb)
      AS m(field text, position integer, property_mapping_pk uuid, certificate_key_pair_pk uuid, group_pk uuid)
  ) SELECT pk FROM made`

const insertApplication = `
  INSERT INTO applications (pk, name, slug, provider_pk, open_in_new_tab, meta_launch_url, meta_description, meta_publisher, policy_engine_mode, group_name)
  VALUES ($1::uuid, $2::text, $2::text, $3::integer, $4, $5, $6, $7, $8::policy_engine_mode, $9)`

const insertRun = `
  WITH made AS (
    INSERT INTO runs (id, state, title, kind, slug, submitter_pk, request_id, blueprint, options, started_at, finished_at, applied, logs)
    VALUES ($1::uuid, 'done', $2, $10, $11, $3::integer, $4, $5, $6::jsonb, now(), now(), true, $7)
  )
  INSERT INTO audit_rows (actor_pk, actor_name, action, changes, request_id, run_id) VALUES ($3::integer, $8, 'apply', $9::jsonb, $4, $1::uuid)`

const json = (value: unknown) => JSON.stringify(value)

const flows = [p.authentication_flow, p.authorization_flow, p.invalidation_flow]
const fields = [
  a.open_in_new_tab,
  a.meta_launch_url,
  a.meta_description,
  a.meta_publisher,
  a.policy_engine_mode,
  a.group_name,
]

/** Runs one statement of an open transaction. */
type Send = (name: string, text: string, values: unknown[]) => Promise<{ pk?: number }[]>

async function writeRows(send: Send, name: string): Promise<void> {
  const [made] = await send('provider', insertProvider, [
    ...[randomUUID(), p.kind, name, ...flows, json(p.settings), json(p.secrets), json(references)],
  ])
  await send('application', insertApplication, [uuid7(), name, made?.pk, ...fields])
  await send('run', insertRun, [
    ...[uuid7(), r.title, r.submitter_pk, randomUUID(), r.blueprint, json(r.options), r.logs, audit.actor_name],
    ...[json(audit.changes), r.kind, r.slug],
  ])
}

const byPrisma = (name: string) =>
  transaction(db, (tx) => writeRows((_, text, values) => tx.$queryRawUnsafe(text, ...values), name))

async function byPg(name: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await writeRows(async (statement, text, values) => {
      return (await client.query<{ pk?: number }>({ name: statement, text, values })).rows
    }, name)
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}

const write = through === 'pg' ? byPg : byPrisma
console.log(JSON.stringify(await measure(load, (number) => write(`${prefix}-${number}`))))
// Prisma ends the pool when it has used it.
await (through === 'pg' ? pool.end() : db.$disconnect())
