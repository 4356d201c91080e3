import { z } from 'zod'
import { write } from '../apply/write.ts'
import type { Db, Tx } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { ErrorList, Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import type { Need } from '../http/documented.ts'
import { matchHeaders, preconditionOf } from '../http/etag.ts'
import { flag, once } from '../http/query.ts'
import { applicationState, compared, readStates, toState } from '../lists/application-states.ts'
import { applicationList } from '../lists/applications.ts'
import { consumer, readConsumers } from '../lists/consumers.ts'
import { queryInteger, queryText } from '../lists/filters.ts'
import { listAndOne, tagsOf } from '../lists/one.ts'
import { runList } from '../lists/runs.ts'
import type { Registry } from '../models/registry.ts'
import { apiPrefix } from '../paths.ts'
import { type Action, allowsSome } from '../permissions.ts'
import { type Engine, unconditional } from '../plan/engine.ts'
import { isOutside, readStanding } from '../runs/outside.ts'
import { ownerHeaders, readOwnership } from '../submissions/conditions.ts'
import { historyEntry, readHistory } from '../views/history.ts'
import { readUidOf } from '../views/uid.ts'

/** GET /api/v3/core/applications/, GET and DELETE /api/v3/core/applications/{slug}/, GET .../history/ */

const model = 'service_core.application'

const deleteDescription = `Its consents go with it; backchannel providers stay, without an application. With \`with_provider=true\` its
provider is deleted in the same transaction, unless another application has it as a backchannel provider.

What another owner manages, and what another user made for a request with an owner, is a 409, as for an apply; so is an
application that a provider refers to.`

const historyDescription = `Each change of the application and of its providers, the newest first: by documents and sets, by requests for
one object, renames and deletions. An application that was deleted or renamed is found under the slug that it had, and by its key.`

const mostAtOnce = 100

const history = z
  .object({
    next: z.string().nullable().meta({ description: 'The path of the next part; null for the last one.' }),
    results: z.array(historyEntry),
    state: applicationState
      .nullable()
      .meta({ description: 'Null when there is no application of this slug or key now.' }),
    consumers: z.array(consumer).meta({
      description:
        'The servers that read its provider, for callers who may view that: those that registered an issuer, or follow changes.',
    }),
    changed_outside: z.boolean().nullable().meta({
      description:
        'Whether the application of `state`, or its provider, is not as its recorded changes left it: changed or deleted past the service. When `state` is null: whether one that had the slug is. Compared are the fields whose changes are known, but for secrets and lists of references. Null when none is known, as when their runs are no longer kept.',
    }),
  })
  .meta({ id: 'History' })

const needsOfKinds = ({ kinds }: Registry, action: Action, when: string): Need[] =>
  [...kinds.values()].map(({ resource, provider: { verboseName } }) => ({
    permission: `${action}_${resource}`,
    when: `${when}: ${verboseName}`,
  }))

export function applicationRoutes(app: Api, db: Db, engine: Engine): void {
  const { registry } = engine
  const applications = applicationList(registry)
  const named = { by: 'slug', key: 'uuid' } as const
  listAndOne(app, db, { ...applications, one: { ...named, displayName: 'application' } })

  app.delete(
    '/core/applications/:slug/',
    {
      config: {
        permission: 'delete_application',
        document: {
          codes: ['conflict', 'precondition_failed'],
          headers: matchHeaders.extend(ownerHeaders.shape),
          alsoNeeds: needsOfKinds(registry, 'delete', 'for `with_provider`'),
        },
      },
      schema: {
        summary: 'Delete an application',
        description: deleteDescription,
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

  const runs = runList(registry)
  app.get(
    '/core/applications/:slug/history/',
    {
      config: {
        permission: 'view_application',
        document: {
          alsoNeeds: [
            ...needsOfKinds(registry, 'view', 'for changes of its provider, and who reads it'),
            { permission: 'view_user', when: 'to see who made the changes of others, and which users read it' },
            { permission: 'view_run', when: "to get the runs of others' changes" },
          ],
        },
      },
      schema: {
        summary: 'Read what changed an application',
        description: historyDescription,
        params: z.object({ slug: queryText().meta({ description: 'The slug that it has, or had, or its key.' }) }),
        querystring: z.strictObject({
          before: z
            .string(once)
            .regex(/^[1-9]\d{0,17}\.\d{1,6}$/, 'Must be what `next` has.')
            .optional()
            .meta({ description: 'Of `next`: older changes only.' }),
          page_size: queryInteger(1, mostAtOnce).default(20).meta({ description: 'Changes at most.' }),
        }),
        response: { 200: history },
      },
    },
    async ({ params, query: { before = null, page_size: size }, actor }) => {
      const text = params.slug.normalize('NFC')
      const key = z.guid().safeParse(text).data?.toLowerCase() ?? null
      const of = { slug: key === null ? text : null, key }
      const found = await inTime(readHistory(db, registry, of, actor, { before, size }))
      if (found === undefined)
        throw new Problem('not_found', 'There is no such application, and none had this slug or key.')
      const path = `${apiPrefix}/core/applications/${encodeURIComponent(text)}/history/`
      const next = found.next === null ? null : `${path}?before=${found.next}&page_size=${size}`
      const asked = key === null ? { slugs: [text] } : { keys: [key] }
      const [state] = (await inTime(readStates(db, runs, actor, asked, found.owners))).values()
      // Another application may have had the slug before.
      const present = state === undefined ? of : { slug: null, key: state.pk }
      const standing = await inTime(readStanding(db, registry, present, found.owners))
      return {
        next,
        results: found.entries.map(({ entry }) => entry),
        state: state === undefined ? null : toState(compared(state, standing)),
        consumers: state === undefined ? [] : await inTime(readConsumers(db, registry, actor, state.pk)),
        changed_outside: isOutside(standing),
      }
    },
  )
}
