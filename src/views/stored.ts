import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { secretIsSet } from '../document/generate.ts'
import type { Field, Model } from '../models/define.ts'
import { expiresOf, previousOf } from '../models/overlap.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows } from '../permissions.ts'
import { toMaskedValues } from '../plan/storage.ts'
import { schemaName } from './schema-names.ts'
import { columnName, inOrder, type View } from './view.ts'

/**
 * An object in the form in which a PUT takes it, made from the declaration of its model: a new field or provider kind is shown
 * without code of its own. No secret is opened.
 */

const secret = secretIsSet.nullable().meta({ description: 'Whether it is set: null when there is none.' })

export const fieldSchemas = ({ fields }: Model): Record<string, z.ZodType> =>
  Object.fromEntries(
    [...fields.values()].flatMap((field) => [
      [field.name, field.secret ? secret : field.schema],
      ...(field.overlap ? Object.entries(overlapSchemas(field)) : []),
    ]),
  )

/** The fields of a secret that may stay valid beside the one that replaced it. */
const overlapSchemas = ({ name }: Field): Record<string, z.ZodType> => ({
  [previousOf(name)]: secret.meta({ description: `The \`${name}\` before: null when there is none.` }),
  [expiresOf(name)]: z.iso
    .datetime()
    .nullable()
    .meta({ description: `Until then \`${previousOf(name)}\` is valid too. It is deleted soon after.` }),
})

/** The creator of an object, and the label under which it is managed. */
export const originSchemas = {
  owner: z.string().nullable().meta({ description: 'The label under which it is managed.' }),
  created_by: z.int().nullable().meta({ description: 'The key of the user who made it.' }),
  created_by_name: z
    .string()
    .nullable()
    .meta({ description: 'Null for a caller without `view_user`, and when the user is gone.' }),
}

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

type ByKeys = { readonly pk: { readonly in: string[] } }
type Stored = Readonly<Record<string, unknown>> & { readonly pk: string }

/**
 * The view of a resource that shows the fields of its model, and no more. Its keys are UUIDs.
 *
 * @param find reads the rows with these keys
 */
export function storedView<M extends Prisma.ModelName>(
  registry: Registry,
  prismaModel: M,
  name: string,
  find: (tx: Tx, where: ByKeys) => Promise<readonly Stored[]>,
) {
  const model = registry.byName(name)
  if (model === undefined) throw new Error(`there is no model ${name}`)
  const schema = z.object({ pk: z.guid(), ...fieldSchemas(model) }).meta({ id: schemaName(`read_${model.resource}`) })
  return {
    model: prismaModel,
    schema,
    async *read(tx: Tx, keys: readonly string[]) {
      const found = await find(tx, { pk: { in: [...keys] } })
      yield inOrder(keys, found, ({ pk }) => pk).map((row) => {
        const columns = Object.entries(row).map(([field, value]) => [columnName(field), value])
        return { pk: row.pk, ...toMaskedValues(model, { ...Object.fromEntries(columns), pk: row.pk }) }
      })
    },
  } satisfies View<M>
}
