import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { once } from '../http/query.ts'
import { applicationState, compared, readStates, toState } from '../lists/application-states.ts'
import { queryInteger, queryText } from '../lists/filters.ts'
import { runList } from '../lists/runs.ts'
import type { Registry } from '../models/registry.ts'
import { apiPrefix } from '../paths.ts'
import { isOutside, readStanding } from '../runs/outside.ts'
import { historyEntry, readHistory } from '../views/history.ts'

/** GET /api/v3/core/applications/{slug}/history/ */

const description = `Each change of the application and of its providers, the newest first: by documents and sets, by requests for
one object, renames and deletions. An application that was deleted or renamed is found under the slug that it had, and by its key.`

const mostAtOnce = 100

const history = z
  .object({
    next: z.string().nullable().meta({ description: 'The path of the next part; null for the last one.' }),
    results: z.array(historyEntry),
    state: applicationState
      .nullable()
      .meta({ description: 'Null when there is no application of this slug or key now.' }),
    changed_outside: z.boolean().nullable().meta({
      description:
        'Whether the application of `state`, or its provider, is not as its recorded changes left it: changed or deleted past the service. When `state` is null: whether one that had the slug is. Compared are the fields whose changes are known, but for secrets and lists of references. Null when none is known, as when their runs are no longer kept.',
    }),
  })
  .meta({ id: 'History' })

export function historyRoutes(app: Api, db: Db, registry: Registry): void {
  const providers = [...registry.kinds.values()].map(({ resource, provider: { verboseName } }) => ({
    permission: `view_${resource}` as const,
    when: `for changes of its provider: ${verboseName}`,
  }))
  const runs = runList(registry)
  app.get(
    '/core/applications/:slug/history/',
    {
      config: {
        permission: 'view_application',
        document: {
          alsoNeeds: [
            ...providers,
            { permission: 'view_user', when: 'to see who made the changes of others' },
            { permission: 'view_run', when: "to get the runs of others' changes" },
          ],
        },
      },
      schema: {
        summary: 'Read what changed an application',
        description,
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
        changed_outside: isOutside(standing),
      }
    },
  )
}
