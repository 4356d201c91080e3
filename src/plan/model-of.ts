import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'

/** The model whose rows have these values, among those that share a table. */
export const modelOf = (
  { models }: Registry,
  table: string,
  row: Readonly<Record<string, unknown>>,
): Model | undefined =>
  models.find(
    (model) =>
      model.table === table && Object.entries(model.discriminator).every(([column, value]) => row[column] === value),
  )
