import type { Model } from '../models/define.ts'

type Columns = Readonly<Record<string, unknown>>

/** Whether a row of the model's table is one of the model: other models may share the table. */
export const isRowOf = ({ discriminator }: Pick<Model, 'discriminator'>, row: Columns): boolean =>
  Object.entries(discriminator).every(([column, value]) => row[column] === value)
