import { bootstrap } from '../../../src/apply/bootstrap.ts'
import type { Db } from '../../../src/db/client.ts'
import type { Model, Values } from '../../../src/models/define.ts'
import type { Engine } from '../../../src/plan/engine.ts'
import { linksOf, type Row } from '../../../src/plan/statements.ts'
import { toValues } from '../../../src/plan/storage.ts'
import { adminToken } from '../../support/engine.ts'
import { execute, raw, rows, sql } from '../../support/sql.ts'

/** What an installation has configured, read past the API, with other rows by name in the place of keys. */

const targets = [
  'flow',
  'propertymapping',
  'certificatekeypair',
  'role',
  'trustedissuer',
  'group',
  'provider',
  'application',
]

/** Fields of all rows by the name of the row. Secrets are open. */
export type Stored = Readonly<Record<string, Readonly<Record<string, unknown>>>>

export async function stored({ db, engine }: { db: Db; engine: Engine }): Promise<Stored> {
  const { registry, keyring } = engine
  const models = registry.models.filter(({ target }) => targets.includes(target))
  const found = (await Promise.all(models.map((model) => readRows(db, model)))).flat()
  const read = found.map(({ model, row }) => ({ model, pk: row.pk, values: toValues(model, row, keyring) }))
  const names = new Map(read.map((each) => [`${each.model.table} ${each.pk}`, nameOf(each.model, each.values)]))
  const named = ({ model, values }: { model: Model; values: Values }) =>
    [...model.fields.values()]
      .filter(({ reference }) => reference?.target !== 'user')
      .map(({ name, reference, storage }): [string, unknown] => {
        const value = values[name]
        if (reference === undefined) return [name, value]
        const other = (pk: unknown) => names.get(`${registry.targets.get(reference.target)?.table} ${pk}`)
        if (!Array.isArray(value)) return [name, value === null ? null : other(value)]
        return [name, storage.in === 'link' ? value.map(other).sort() : value.map(other)]
      })
  return Object.fromEntries(
    read.map((each) => [
      nameOf(each.model, each.values),
      each.model.isGenerated?.(each.values) ? { generated: true } : Object.fromEntries(named(each)),
    ]),
  )
}

/** Names a row by what finds it: a mapping by `managed`, or else by name and kind. */
export function nameOf({ name, identifiers }: Model, values: Values): string {
  const set = identifiers.findLast((fields) => fields.every((field) => (values[field] ?? null) !== null)) ?? []
  return JSON.stringify([name, ...set.map((field) => values[field])])
}

async function readRows(db: Db, model: Model): Promise<{ model: Model; row: Row }[]> {
  const of = Object.entries(model.discriminator).map(([column, value]) => `t."${column}" = '${value}'`)
  const links = linksOf(model).map(
    ([{ name }, { table, own, other }]) =>
      `, 'link:${name}', ARRAY(SELECT l."${other}" FROM "${table}" l WHERE l."${own}" = t.pk)`,
  )
  const made = `jsonb_build_object('pk', t.pk${links.join('')})`
  const text = `SELECT to_jsonb(t) || ${made} AS row FROM "${model.table}" t WHERE ${['true', ...of].join(' AND ')}`
  return (await rows<{ row: Row }>(db, sql`${raw(text)}`)).map(({ row }) => ({ model, row }))
}

/** Makes the installation what it was at its first start. */
export async function emptied({ db, engine }: { db: Db; engine: Engine }): Promise<void> {
  await execute(
    db,
    sql`DO $$ BEGIN
    DELETE FROM applications; DELETE FROM providers; DELETE FROM property_mappings; DELETE FROM flows;
    DELETE FROM certificate_key_pairs; DELETE FROM tokens; DELETE FROM memberships; DELETE FROM group_roles;
    UPDATE groups SET parent = NULL WHERE parent IS NOT NULL;
    DELETE FROM groups; DELETE FROM roles; DELETE FROM trusted_issuers; DELETE FROM users; DELETE FROM installation; END $$`,
  )
  await bootstrap(db, engine, () => adminToken)
}
