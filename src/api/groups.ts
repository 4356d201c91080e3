import { z } from 'zod'
import type { Engine } from '../blueprint/inspect.ts'
import { writable } from '../blueprint/writable.ts'
import { type Write, write } from '../blueprint/write.ts'
import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../http/filters.ts'
import { list } from '../http/list.ts'
import { username } from '../models/syntax.ts'
import type { Actor } from '../permissions.ts'
import { groupView } from '../views/group.ts'
import { readOne } from '../views/rows.ts'
import type { Row, View } from '../views/view.ts'

/** GET and POST /api/v3/core/groups/, PATCH /api/v3/core/groups/{group_uuid}/ */

const model = 'service_core.group'

/** What `escalation-rules.ts` asks, as the description tells it. */
const toGrant = [
  { permission: 'add_user_to_group', when: 'to add members, with all that the group hands to them' },
  { permission: 'assign_role', when: 'to give or take roles; given ones with all that is in them' },
  { permission: 'enable_group_superuser', when: 'to set `is_superuser`, or to put it below a group that has it' },
] as const
const toChange = [
  {
    permission: 'disable_group_superuser',
    when: 'to unset `is_superuser`, or to take it from below a group that has it',
  },
  { permission: 'superuser', when: 'to make superusers of members that it has' },
] as const

/** Answers are what the view makes of rows: nothing is validated on the way out. */
const full: View['schema'] = groupView.schema

const hasMember = {
  key: 'g.pk',
  pairs: 'memberships m',
  own: 'm.group_pk',
  other: 'm.user_pk',
  table: 'users',
  noun: 'user',
} as const

const usernameParameter = filter.queryText(150).superRefine((sent, context) => {
  const fault = username(sent)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
})

export function groupRoutes(app: Api, db: Db, engine: Engine): void {
  const save = (actor: Actor, request: Omit<Write, 'model'>): Promise<Row> =>
    write(db, engine, actor, { model, ...request }, (tx, pk) => readOne(tx, groupView, pk))

  list(app, db, {
    path: '/core/groups/',
    summary: 'List groups',
    permission: 'view_group',
    view: groupView,
    search: ['lower(g.name) LIKE {pattern}'],
    order: {
      name: { sql: 'g.name', unique: true },
      num_pk: { sql: 'g.num_pk', unique: true },
      pk: { sql: 'g.pk', unique: true },
      is_superuser: { sql: 'g.is_superuser' },
    },
    defaultOrder: 'name',
    filters: {
      attributes: filter.contains('g.attributes'),
      is_superuser: filter.isTrue('g.is_superuser'),
      members_by_pk: filter.relatedByKey('integer', hasMember),
      members_by_username: filter.relatedByName('username', hasMember, usernameParameter),
      name: filter.equals('g.name'),
    },
    include: 'include_users',
  })

  app.post(
    '/core/groups/',
    {
      config: {
        permission: 'add_group',
        tellsTextFaults: true,
        document: { body: () => writable(engine.registry, model, 'create'), alsoNeeds: toGrant },
      },
      schema: { summary: 'Create a group', body: z.unknown(), response: { 201: full } },
    },
    async ({ actor, body: members, textFaults, id: requestId }, reply) => {
      return reply.code(201).send(await save(actor, { mode: { create: true }, members, textFaults, requestId }))
    },
  )

  app.patch(
    '/core/groups/:group_uuid/',
    {
      config: {
        permission: 'change_group',
        tellsTextFaults: true,
        document: { body: () => writable(engine.registry, model, 'change'), alsoNeeds: [...toGrant, ...toChange] },
      },
      schema: {
        summary: 'Change a group',
        params: z.object({ group_uuid: z.guid() }),
        body: z.unknown(),
        response: { 200: full },
      },
    },
    async ({ params, actor, body: members, textFaults, id: requestId }, reply) => {
      const mode = { change: params.group_uuid.toLowerCase() }
      return reply.send(await save(actor, { mode, members, textFaults, requestId }))
    },
  )
}
