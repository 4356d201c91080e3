import type { FastifySchemaCompiler } from 'fastify'
import { z } from 'zod'
import { ErrorList, Problem } from '../errors.ts'
import { unknownName } from '../messages.ts'

/** Validates each part of a request by its zod schema, and reports every error of that part. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (data: unknown) => {
    const parsed = schema.safeParse(data)
    if (parsed.success) return { value: parsed.data }
    // A malformed key in a path is the key of nothing.
    if (httpPart === 'params') return { error: new Problem('not_found', 'There is nothing here.') }
    return { error: invalid(parsed.error, schema, httpPart === 'querystring' ? 'parameter' : 'field') }
  }

function invalid(error: z.ZodError, schema: z.ZodType, what: string): Problem {
  const errors = new ErrorList()
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  for (const issue of error.issues) {
    const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))
    if (issue.code !== 'unrecognized_keys') errors.add(path, issue.message)
    else
      for (const key of issue.keys) {
        errors.add([...path, key], () => unknownName(what, key, path.length === 0 ? known : []))
      }
  }
  return new Problem('invalid', 'The request is not valid.', { fields: errors.tree() })
}

/** For routes that declare no query parameters. */
export const noQuery = z.strictObject({})
