import type { Client } from 'pg'
import { type AuditedChange, auditStatement } from '../apply/audit.ts'
import type { Keyring } from '../db/seal.ts'
import { sealedCheck } from '../db/sealed-check.ts'
import { inSessionTransaction } from '../db/session.ts'
import { sha256, uuid7 } from '../ids.ts'
import type { Registry } from '../models/registry.ts'
import { system } from '../permissions.ts'
import { labelColumn, ownRows } from '../plan/statements.ts'
import { groupsOfUser } from '../rights/actor.ts'
import { newSecret } from '../token-secret.ts'
import { cancelledSet } from './ledger.ts'
import { type SealedColumn, sealedColumns } from './reseal.ts'

/** The way back after a lost SECRET_KEY: what was sealed under it is cleared, and everything else stays. */

/** Values of one place that no key opens. @property names what they belong to, as an operator knows it; none for runs */
export type Lost = { readonly place: string; readonly count: number; readonly names: readonly string[] }

const program = 'gatewright-secrets'

type SealedIn = Pick<SealedColumn, 'table' | 'column' | 'json'>

const placesOf = (registry: Registry): SealedIn[] => [
  ...sealedColumns(registry),
  { table: 'installation', column: 'sealed_check', json: false },
]

/** Whether a text was sealed under none of the keys with the ids $1, in SQL. It is no text in rows without a secret. */
const isLost = (envelope: string) => `(${envelope} IS NOT NULL AND split_part(${envelope}, '.', 2) <> ALL($1::text[]))`

/** The lost ones of the secrets of a row: `each.key`. */
const lostOnes = `jsonb_each_text(secrets) AS each WHERE ${isLost('each.value')}`

const hasLost = ({ column, json }: SealedIn): string => (json ? `EXISTS (SELECT FROM ${lostOnes})` : isLost(column))

const names: Readonly<Record<string, string>> = {
  providers: `concat(kind, ' "', name, '": ', (SELECT string_agg(each.key, ', ') FROM ${lostOnes}))`,
  certificate_key_pairs: 'name',
  totp_devices: `concat('"', name, '" of ', (SELECT username FROM users WHERE users.pk = user_pk))`,
  tokens: 'identifier',
}

/** The values that are lost with each key but those of `ids`, by place. */
export const findLost = (url: string, registry: Registry, ids: readonly string[]): Promise<Lost[]> =>
  inSessionTransaction(url, program, async (client) => {
    const all: Lost[] = []
    for (const place of placesOf(registry)) {
      const name = names[place.table] ?? 'NULL'
      const text = `SELECT count(*)::integer AS count, coalesce(array_agg(name ORDER BY name) FILTER (WHERE name <> ''), '{}') AS names
        FROM (SELECT ${name} AS name FROM ${place.table} WHERE ${hasLost(place)}) lost`
      const { rows } = await client.query<Omit<Lost, 'place'>>(text, [ids])
      for (const row of rows) if (row.count > 0) all.push({ place: `${place.table}.${place.column}`, ...row })
    }
    return all
  })

/** The most objects of one model and place that the audit row names. */
const mostNamed = 1_000

type LostOf = { readonly key: string | number; readonly name: string; readonly owner: string | null; fields: string[] }

/** Clears a place. @returns the objects that lost values, by name as far as there is room, and else their number */
async function clear(client: Client, { models }: Registry, place: SealedIn, ids: readonly string[]) {
  const { table, column, json } = place
  const action = table === 'totp_devices' ? 'delete' : 'update'
  const changes: AuditedChange[] = []
  for (const model of models.filter((each) => each.table === table)) {
    const { name, isLabelled } = model
    const field = [...model.fields.values()].find(({ storage }) => storage.in === 'sealed' && storage.column === column)
    const lost = json ? `ARRAY(SELECT each.key FROM ${lostOnes})` : `ARRAY['${field?.name ?? column}']`
    const text = `SELECT pk AS key, ${labelColumn(model)}::text AS name, ${isLabelled ? 'owner' : 'NULL'} AS owner, ${lost} AS fields
      FROM ${table} t WHERE ${[...ownRows(model), hasLost(place)].join(' AND ')} ORDER BY pk LIMIT ${mostNamed}`
    const { rows } = await client.query<LostOf>(text, [ids])
    for (const { key, fields, ...named } of rows) {
      const changed = Object.fromEntries(fields.map((each) => [each, 'changed' as const]))
      const object = { ...named, was: null, change: null, fields: changed }
      changes.push({ model: name, key, action, fields, object })
    }
  }
  const left = ((await client.query(clearing(place), [ids])).rowCount ?? 0) - changes.length
  if (left > 0)
    changes.push({ model: table, key: `${left}${changes.length > 0 ? ' more' : ''} rows`, action, fields: [column] })
  return changes
}

/** An overlap ends with its secret. An authenticator is nothing without its key. */
function clearing(place: SealedIn): string {
  const { table, column, json } = place
  if (table === 'totp_devices') return `DELETE FROM ${table} WHERE ${hasLost(place)}`
  const cleared = json
    ? `secrets = secrets - ARRAY(SELECT each.key FROM ${lostOnes}),
        settings = settings - ARRAY(SELECT each.key || '_expires' FROM ${lostOnes})`
    : `${column} = NULL`
  return `UPDATE ${table} SET ${cleared} WHERE ${hasLost(place)}`
}

const cancel = `UPDATE runs SET ${cancelledSet("'its document was sealed under a key that is lost'")} WHERE state = 'queued' AND ${isLost('blueprint')}`

/** Digests under a lost key, of documents that are not there any more and requests that may be repeated; tokens of jobs. */
const forgetDigests = `UPDATE runs SET document = NULL WHERE document IS NOT NULL
    AND NOT EXISTS (SELECT FROM runs holder WHERE holder.document = runs.document AND holder.blueprint IS NOT NULL);
  DELETE FROM idempotency_keys; DELETE FROM exchanged_tokens`

const superuser = `SELECT u.pk FROM users u WHERE u.is_active AND EXISTS (
    SELECT FROM (${groupsOfUser('u.pk')}) held JOIN groups g ON g.pk = held.pk WHERE g.is_superuser)
  ORDER BY u.username = 'admin' DESC, u.pk LIMIT 1`

/**
 * Clears in one transaction what the keys do not open, and gives an active superuser another token.
 *
 * @param keep keeps the secret of that token, before it is in the database
 * @returns whether there is such a superuser
 */
export const forget = (
  url: string,
  registry: Registry,
  keyring: Keyring,
  { identifier, keep }: { readonly identifier: string; readonly keep: (secret: string) => void },
): Promise<boolean> =>
  inSessionTransaction(url, program, async (client) => {
    const values = [keyring.ids]
    await client.query(cancel, values)
    const changes: AuditedChange[] = []
    for (const place of placesOf(registry)) changes.push(...(await clear(client, registry, place, keyring.ids)))
    await client.query(forgetDigests)
    const { rows: installations } = await client.query<{ id: string }>('SELECT id FROM installation')
    for (const { id } of installations)
      await client.query('UPDATE installation SET sealed_check = $1', [sealedCheck(keyring, id)])
    const { rows: users } = await client.query<{ pk: number }>(superuser)
    const [user] = users
    const token = uuid7()
    if (user !== undefined) {
      const object = { name: identifier, was: null, owner: null, change: null, fields: {} }
      changes.push({ model: 'service_core.token', key: token, action: 'create', fields: [], object })
    }
    const { text, values: audited } = auditStatement({ actor: system, action: 'forget_secrets', changes })
    await client.query(text, [...audited])
    if (user === undefined) return false
    const secret = newSecret('api', keyring)
    keep(secret)
    await client.query(
      `INSERT INTO tokens (pk, identifier, user_pk, description, expiring, key_hash, checksum_key)
        VALUES ($1, $2, $3, 'Made when a lost SECRET_KEY was forgotten', false, $4, $5)`,
      [token, identifier, user.pk, sha256(secret), keyring.ids[0]],
    )
    return true
  })
