import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { within } from '../db/snapshot.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { answerOf, objectText } from '../http/long-answer.ts'
import { queryInteger } from '../lists/filters.ts'
import { alsoNeedsOf, includeParameter, isIncluded } from '../lists/list.ts'
import { pageSize } from '../lists/page.ts'
import { apiPrefix } from '../paths.ts'
import { groupMember, readMembers } from '../views/members.ts'
import { readUidOf } from '../views/uid.ts'

/** GET /api/v3/core/groups/{group_uuid}/members/ */

const description = `The direct members, in the order of their keys. Each page begins behind the last member of the page before, so a page
costs the same wherever it is, and members who come or go meanwhile move no other to another page.
\`GET /core/users/?groups_by_pk=\` counts and searches members, and has them in other orders.`

/** The schema has no type: the handler answers with its text. */
const members: z.ZodType = z
  .object({
    next: z
      .string()
      .nullable()
      .meta({
        description: 'The path of the next page; null for the last one.',
        examples: ['/api/v3/core/groups/01a1fd66-1f20-7c11-8a30-5b6f3f2d9a01/members/?after=17&page_size=100'],
      }),
    results: z.array(groupMember),
  })
  .meta({ id: 'GroupMembers' })

/** The members in the form of the group. */
const shown = { include: { parameter: 'include_users', permission: 'view_user', field: 'user_obj' } } as const

export function groupMemberRoutes(app: Api, db: Db): void {
  app.get(
    '/core/groups/:group_uuid/members/',
    {
      config: { permission: 'view_group', takes: 'list', document: { alsoNeeds: alsoNeedsOf(shown), verb: 'list' } },
      schema: {
        summary: 'List the members of a group',
        description,
        params: z.object({ group_uuid: z.guid().meta({ description: 'The `pk` of the group.' }) }),
        querystring: z.strictObject({
          after: queryInteger(0, 2_147_483_647).default(0).meta({ description: 'Of `next`: members behind it only.' }),
          page_size: pageSize('Members at most.'),
          ...includeParameter(shown),
        }),
        response: { 200: members },
      },
    },
    async (request, reply) => {
      const { params, query, actor } = request
      const pk = params.group_uuid.toLowerCase()
      const { after, page_size: size } = query
      const reading = { uidOf: await readUidOf(db), related: isIncluded(shown, query, actor) }
      const found = await readMembers(db, pk, { after, size }, reading)
      if (found === undefined) throw new Problem('not_found', 'There is no such group.')
      const without = Object(query).include_users === false ? '&include_users=false' : ''
      const path = `${apiPrefix}/core/groups/${pk}/members/`
      const next = found.next === null ? null : `${path}?after=${found.next}&page_size=${size}${without}`
      const source = within(db)
      const pieces = objectText(source, { next, results: found.members })
      return reply.type('application/json; charset=utf-8').send(await answerOf(reply, source, pieces))
    },
  )
}
