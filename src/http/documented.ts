import type { z } from 'zod'
import type { ProblemCode } from '../errors.ts'
import type { JsonObject } from '../json-object.ts'
import type { Permission } from '../permissions.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The parts of the API's description beside the route's schemas and permission. */
    document?: Documented
  }
  interface FastifySchema {
    summary?: string
    description?: string
    /** The route is no part of the description. */
    hide?: boolean
  }
}

/** The facts that are not in the schemas of a route: a body that the handler validates itself, and its refusals. */
export type Documented = {
  /** Error codes beside those that follow from the route's schemas and permission. */
  readonly codes?: readonly ProblemCode[]
  /** The last paragraph of its description, before who may call it. */
  readonly note?: string
  readonly headers?: z.ZodObject
  readonly answerHeaders?: readonly string[]
  readonly body?: () => z.ZodType
  /** Examples of bodies, by name. */
  readonly examples?: () => JsonObject
  /** An example of a body that is not JSON. */
  readonly text?: () => string
  /** The last word of the operation's id, where that of its method would make two the same. */
  readonly verb?: string
  /** Permissions that some requests need beside that of the route. */
  readonly alsoNeeds?: readonly Need[]
}

/** A permission that some requests of an operation need. */
export type Need = {
  readonly permission: 'superuser' | Permission | readonly Permission[]
  /** The requests that need it: `for another user`, `to add members`. */
  readonly when: string
}
