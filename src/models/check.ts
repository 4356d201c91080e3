import { readTables } from '../db/catalog.ts'
import type { Db } from '../db/client.ts'
import { StartError } from '../start-error.ts'
import { fileOf } from './declared.ts'
import type { Field, Model } from './define.ts'

/**
 * Checks that the database has the columns in which the models store their fields.
 *
 * @throws {StartError} naming each file that declares a field without its column
 */
export async function checkModels(db: Db, { models }: { readonly models: readonly Model[] }): Promise<void> {
  const tables = await readTables(db)
  const errors = models.flatMap((model) =>
    columnsOf(model)
      .filter(({ table, column }) => tables.get(table)?.columns.includes(column) !== true)
      .map(({ what, table, column }) => `${fileOf(model)} ${what}, but the table ${table} has no column ${column}.`),
  )
  if (errors.length > 0)
    throw new StartError(
      `${errors.join('\n')}\nAdd it to prisma/schema.prisma and write its migration with "npm run migration", or correct the declaration.`,
    )
}

type Column = { readonly what: string; readonly table: string; readonly column: string }

function columnsOf(model: Model): Column[] {
  const { table, discriminator, uuid, storedInJson, referenceRows, numbered = [] } = model
  const own = [
    ...['pk', ...Object.keys(discriminator), ...numbered],
    ...(uuid ? ['uuid'] : []),
    ...(storedInJson ? ['settings', 'secrets'] : []),
  ]
  const { own: key = [], columns = {} } = referenceRows ?? {}
  const references = [key, Object.values(columns).map(({ name }) => name)].flat()
  return [
    ...own.map((column) => ({ what: 'declares its rows', table, column })),
    ...references.map((column) => ({ what: 'declares reference rows', table: referenceRows?.table ?? '', column })),
    ...[...model.fields.values()].flatMap((field) => columnsOfField(model, field)),
  ]
}

function columnsOfField({ table }: Model, { name, storage }: Field): Column[] {
  const what = `declares the field ${name}`
  if (storage.in === 'link')
    return [storage.own, storage.other].map((column) => ({ what, table: storage.table, column }))
  return 'column' in storage ? [{ what, table, column: storage.column }] : []
}
