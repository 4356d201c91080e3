import type { z } from 'zod'

/** A schema with its example in the description of the API. The compiler checks the example. */
export const withExample = <Schema extends z.ZodType>(
  schema: Schema,
  example: NoInfer<z.input<Schema>>,
  description?: string,
): Schema => schema.meta({ ...(description !== undefined && { description }), examples: [example] })
