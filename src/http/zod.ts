import type { FastifySchemaCompiler } from 'fastify'
import { z } from 'zod'
import { ErrorList, type FieldPath, Problem } from '../errors.ts'
import { addIssues } from '../messages.ts'

/** Validates each part of a request by its zod schema, and reports every error of that part. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (data: unknown) => {
    const parsed = schema.safeParse(data)
    if (parsed.success) return { value: parsed.data }
    // No object has a malformed key.
    if (httpPart === 'params') return { error: new Problem('not_found', 'There is nothing here.') }
    return { error: invalid(parsed.error, schema, data, partOf[httpPart ?? 'body']) }
  }

/** The names, in errors, of the parts of a request besides its body. */
const partOf: Readonly<Record<string, 'header' | 'parameter'>> = { querystring: 'parameter', headers: 'header' }

function invalid(error: z.ZodError, schema: z.ZodType, data: unknown, part?: 'header' | 'parameter'): Problem {
  const errors = new ErrorList()
  const known = (path: FieldPath) =>
    path.length === 0 && schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  addIssues(part === undefined ? errors : errors.of(part), error.issues, { input: data, known, what: part ?? 'field' })
  return errors.problem()
}

/** The query of routes without parameters. */
export const noQuery = z.strictObject({})
