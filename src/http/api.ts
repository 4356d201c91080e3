import type * as fastify from 'fastify'
import type { z } from 'zod'

/** The types of what a route gets and answers, by its zod schemas. */
export interface ZodTypeProvider extends fastify.FastifyTypeProvider {
  validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown
  serializer: this['schema'] extends z.ZodType ? z.input<this['schema']> : unknown
}

/** The application as route files see it: a route's zod schemas give the types of its handler. */
export type Api = fastify.FastifyInstance<
  fastify.RawServerDefault,
  fastify.RawRequestDefaultExpression,
  fastify.RawReplyDefaultExpression,
  fastify.FastifyBaseLogger,
  ZodTypeProvider
>
