import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { masked } from '../document/mask.ts'
import type { Field, Model } from '../models/define.ts'
import { expiresOf, previousOf } from '../models/overlap.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows } from '../permissions.ts'
import { columnsOf, type Row } from '../plan/statements.ts'
import { toMaskedValues } from '../plan/storage.ts'
import { schemaName } from './schema-names.ts'
import { type FieldOf, inOrder, type View } from './view.ts'

/**
 * An object in the form in which a PUT takes it, made from the declaration of its model: a new field or provider kind is shown
 * without code of its own. No secret is opened.
 */

const secret = z
  .literal(masked)
  // Generators make an enum with null in it of a text that is always the same, or null, and TypeScript refuses that.
  .meta({ type: 'string', const: undefined, enum: undefined, examples: [masked] })
  .nullable()
  .meta({ description: 'Masked (`********`); null when there is none. Leave it out when you send the object back.' })

export const fieldSchemas = ({ fields }: Model): Record<string, z.ZodType> =>
  Object.fromEntries(
    [...fields.values()].flatMap((field) => [
      [field.name, field.secret ? secret : field.schema],
      ...(field.overlap ? Object.entries(overlapSchemas(field)) : []),
    ]),
  )

/** The fields of a secret that may stay valid beside the one that replaced it. */
const overlapSchemas = ({ name }: Field): Record<string, z.ZodType> => ({
  [previousOf(name)]: secret.meta({ description: `The \`${name}\` before, masked; null when there is none.` }),
  [expiresOf(name)]: z.iso
    .datetime()
    .nullable()
    .meta({ description: `Until then \`${previousOf(name)}\` is valid too. It is deleted soon after.` }),
})

/** Prisma's fields of a row by their columns in the database. */
export type Columns<Stored> = Readonly<Record<string, keyof Stored & string>>

/** @returns all fields of the model */
export function toFields<Stored extends { readonly pk: Row['pk'] }>(
  model: Model,
  columns: Columns<Stored>,
  row: Stored,
): Readonly<Record<string, unknown>> {
  const stored = Object.entries(columns).map(([column, field]) => [column, row[field]])
  return toMaskedValues(model, { ...Object.fromEntries(stored), pk: row.pk })
}

export function checkColumns(model: Model, columns: Readonly<Record<string, string>>): void {
  const implied = ['pk', ...Object.keys(model.discriminator), ...(model.uuid ? ['uuid'] : [])]
  const missing = columnsOf(model).filter((column) => !Object.hasOwn(columns, column) && !implied.includes(column))
  if (missing.length > 0)
    throw new Error(`${model.name} is stored in ${missing.join(', ')}, which its view does not read: add it there`)
}

/** The creator of an object, and the label under which it is managed. */
export const originSchemas = {
  owner: z.string().nullable().meta({ description: 'The label under which it is managed.' }),
  created_by: z.int().nullable().meta({ description: 'The key of the user who made it.' }),
  created_by_name: z
    .string()
    .nullable()
    .meta({ description: 'Null for a caller without `view_user`, and when the user is gone.' }),
}

export const originSelect = { owner: true, createdBy: true } as const

type Origin = { readonly owner: string | null; readonly createdBy: number | null }

/** The permission for the API's description. */
export const toSeeMakers = [{ permission: 'view_user', when: 'to get `created_by_name`, which else is null' }] as const

/** The names of the creators of these objects, by key; none for a caller who may not see users. */
export async function readMakers(
  tx: Tx,
  rows: readonly Origin[],
  actor: Actor,
): Promise<ReadonlyMap<number | null, string>> {
  const keys = [...new Set(rows.map(({ createdBy }) => createdBy).filter((pk) => pk !== null))]
  if (keys.length === 0 || !allows(actor, 'view_user')) return new Map()
  const users = await tx.user.findMany({ where: { pk: { in: keys } }, select: { pk: true, username: true } })
  return new Map(users.map(({ pk, username }) => [pk, username]))
}

export const toOrigin = ({ owner, createdBy }: Origin, makers: ReadonlyMap<number | null, string>) => ({
  owner,
  created_by: createdBy,
  created_by_name: makers.get(createdBy) ?? null,
})

type Query = { readonly where: { readonly pk: { readonly in: string[] } }; readonly select: Record<string, true> }

/** The declaration of a resource that shows the fields of its model, and no more. */
type Declared<M extends Prisma.ModelName> = {
  /** The name of the model's declaration: `service_flows.flow`. */
  readonly name: string
  readonly model: M
  readonly columns: Readonly<Record<string, FieldOf<M>>>
  find(tx: Tx, query: Query): Promise<object[]>
}

/** The view of a model with UUID keys. */
export function storedView<M extends Prisma.ModelName>(
  registry: Registry,
  { name, model: prismaModel, columns, find }: Declared<M>,
) {
  type Stored = { readonly pk: string } & Readonly<Record<FieldOf<M>, unknown>>
  const select = Object.fromEntries(['pk', ...Object.values(columns)].map((field) => [field, true] as const))
  const model = registry.byName(name)
  if (model === undefined) throw new Error(`there is no model ${name}`)
  checkColumns(model, columns)
  const schema = z.object({ pk: z.guid(), ...fieldSchemas(model) }).meta({ id: schemaName(`read_${model.resource}`) })
  return {
    model: prismaModel,
    schema,
    async *read(tx: Tx, keys: readonly string[]) {
      const found = (await find(tx, { where: { pk: { in: [...keys] } }, select })) as Stored[]
      const rows = inOrder(keys, found, ({ pk }) => pk)
      yield rows.map((row) => ({ pk: row.pk, ...toFields(model, columns, row) }))
    },
  } satisfies View<M>
}
