import { z } from 'zod'
import { write } from '../apply/write.ts'
import type { Db, Tx } from '../db/client.ts'
import { ErrorList } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { matchHeaders, preconditionOf } from '../http/etag.ts'
import { flag } from '../http/query.ts'
import { applicationList } from '../lists/applications.ts'
import { queryText } from '../lists/filters.ts'
import { listAndOne, tagsOf } from '../lists/one.ts'
import { allowsSome } from '../permissions.ts'
import { type Engine, unconditional } from '../plan/engine.ts'
import { ownerHeaders, readOwnership } from '../submissions/conditions.ts'
import { readUidOf } from '../views/uid.ts'

/** GET /api/v3/core/applications/, GET and DELETE /api/v3/core/applications/{slug}/ */

const model = 'service_core.application'

const description = `Its consents go with it; backchannel providers stay, without an application. With \`with_provider=true\` its
provider is deleted in the same transaction, unless another application has it as a backchannel provider.

What another owner manages, and what another user made for a request with an owner, is a 409, as for an apply; so is an
application that a provider refers to.`
export function applicationRoutes(app: Api, db: Db, engine: Engine): void {
  const { kinds } = engine.registry
  const applications = applicationList(engine.registry)
  const named = { by: 'slug', key: 'uuid' } as const
  listAndOne(app, db, applications, { ...named, displayName: 'application' })

  app.delete(
    '/core/applications/:slug/',
    {
      config: {
        permission: 'delete_application',
        document: {
          codes: ['conflict', 'precondition_failed'],
          headers: matchHeaders.extend(ownerHeaders.shape),
          alsoNeeds: [...kinds.values()].map(({ resource, provider: { verboseName } }) => ({
            permission: `delete_${resource}` as const,
            when: `for \`with_provider\`: ${verboseName}`,
          })),
        },
      },
      schema: {
        summary: 'Delete an application',
        description,
        params: z.object({ slug: queryText().meta({ description: 'The slug, or the key, of the application.' }) }),
        querystring: z.strictObject({ with_provider: flag('Deletes its provider too.') }),
        response: { 204: z.null() },
      },
    },
    async ({ params: { slug }, query, headers, actor, id: requestId }, reply) => {
      const errors = new ErrorList()
      const owned = readOwnership(headers, errors)
      errors.throwIfAny()
      const conditions = { ...unconditional, ...owned, replaceProvider: query.with_provider }
      const text = slug.normalize('NFC')
      const pk = z.guid().safeParse(text).data?.toLowerCase()
      const mode = { remove: pk === undefined ? { slug: text } : { pk } }
      const reading = { actor, uidOf: await readUidOf(db) }
      const isSeen = allowsSome(actor, 'view_application')
      const tags = async (tx: Tx) => (isSeen ? await tagsOf(tx, applications, named, text, reading) : [])
      const precondition = preconditionOf(headers, 'application', tags)
      await write(db, engine, actor, { model, mode, conditions, requestId, precondition }, async () => undefined)
      return reply.code(204).send(null)
    },
  )
}
