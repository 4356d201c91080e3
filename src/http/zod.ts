import type { FastifySchemaCompiler } from 'fastify'
import { z } from 'zod'
import { Faults, Problem } from '../errors.ts'
import { unknownName } from '../messages.ts'

/** Validates each part of a request by its zod schema, and tells every fault of that part in the contract's form. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (data: unknown) => {
    const parsed = schema.safeParse(data)
    if (parsed.success) return { value: parsed.data }
    // A malformed key in a path names nothing that could exist.
    if (httpPart === 'params') return { error: new Problem('not_found', 'There is nothing here.') }
    return { error: invalid(parsed.error, schema, httpPart === 'querystring' ? 'parameter' : 'member') }
  }

function invalid(error: z.ZodError, schema: z.ZodType, what: string): Problem {
  const faults = new Faults()
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  for (const issue of error.issues) {
    const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))
    if (issue.code !== 'unrecognized_keys') faults.add(path, issue.message)
    else
      for (const key of issue.keys) faults.add([...path, key], unknownName(what, key, path.length === 0 ? known : []))
  }
  return new Problem('invalid', 'The request is not valid.', { fields: faults.tree() })
}

/** A route that declares no query parameters takes none. */
export const noQuery = z.strictObject({})
