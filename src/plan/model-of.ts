import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'

type Columns = Readonly<Record<string, unknown>>

/** Whether a row of the model's table is one of the model: other models may share the table. */
export const isRowOf = ({ discriminator }: Pick<Model, 'discriminator'>, row: Columns): boolean =>
  Object.entries(discriminator).every(([column, value]) => row[column] === value)

/** The model of a row, among those that share a table. */
export const modelOf = ({ models }: Registry, table: string, row: Columns): Model | undefined =>
  models.find((model) => model.table === table && isRowOf(model, row))
