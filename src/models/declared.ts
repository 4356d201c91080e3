import type { z } from 'zod'
import { StartError } from '../start-error.ts'

/** The file that declares a model: `src/models/providers/radius.ts`. */
export const fileOf = ({ displayName }: { readonly displayName: string }): string =>
  `src/models/${displayName
    .replace(/^provider /, 'providers/')
    .toLowerCase()
    .replaceAll(' ', '-')}.ts`

/** The examples of a field, for the API's description: `.meta({ examples: ['platform'] })`, in a model before its default. */
export const examplesOf = (schema: z.ZodType): readonly unknown[] => [schema.meta()?.examples ?? []].flat()

/** @throws {StartError} when an example does not fit its field. @param where the declaration */
export function checkExamples(where: string, field: string, schema: z.ZodType): void {
  for (const example of examplesOf(schema)) {
    const [issue] = schema.safeParse(example).error?.issues ?? []
    const what = `${where}: the example ${JSON.stringify(example)} of the field ${field}`
    if (issue !== undefined) throw new StartError(`${what} does not fit it: ${issue.message} Change the example.`)
  }
}
