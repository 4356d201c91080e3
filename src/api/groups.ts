import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type Write, write } from '../apply/write.ts'
import type { Db, Tx } from '../db/client.ts'
import { separately } from '../db/snapshot.ts'
import { ErrorList } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { matchHeaders, preconditionOf, sendWritten } from '../http/etag.ts'
import type { Headers } from '../http/headers.ts'
import { answerOf, objectText, shortText } from '../http/long-answer.ts'
import * as filter from '../lists/filters.ts'
import { includeParameter, isIncluded } from '../lists/list.ts'
import { listAndOne, tagOf } from '../lists/one.ts'
import { groupName } from '../lists/tables.ts'
import { writable } from '../openapi/writable.ts'
import { type Actor, allows } from '../permissions.ts'
import type { Engine } from '../plan/engine.ts'
import { allowHeaders, readOwnership } from '../submissions/conditions.ts'
import { type Group, groupView, readGroup } from '../views/group.ts'
import { readUidOf } from '../views/uid.ts'

/** GET and POST /api/v3/core/groups/, GET and PATCH /api/v3/core/groups/{group_uuid}/ */

const model = 'service_core.group'

/** Callers without it get the keys of members, and `users_obj` is null. */
const seesMembers = 'view_user'

/** The policies of `rights/policies.ts`, in the words of the API description. */
const toGrant = [
  { permission: 'add_user_to_group', when: 'to add members' },
  { permission: 'assign_role', when: 'to give roles, or to set a parent that has roles' },
  { permission: 'enable_group_superuser', when: 'to set `is_superuser`, or to put it below a group that has it' },
] as const
const toChange = [
  { permission: 'rename_group', when: 'to change `name`' },
  { permission: 'add_user_to_group', when: 'to add or remove members, or to move a branch that has members' },
  { permission: 'assign_role', when: 'to give or remove roles, or to move from or to a parent that has roles' },
  { permission: 'enable_group_superuser', when: 'to set `is_superuser`, or to put it below a group that has it' },
  {
    permission: 'disable_group_superuser',
    when: 'to unset `is_superuser`, or to take it from below a group that has it',
  },
  { permission: 'superuser', when: 'to make superusers of members, or to take superuser rights from them' },
] as const
const toSee = { permission: seesMembers, when: 'to get `users_obj`, which else is null' } as const

const grantNote = `The caller must hold everything that the group grants to the members that it adds, inherited rights too, and
everything that these users hold.`
/** The rule of `rights/gains.ts`. */
const gainNote = `Users who would gain rights, and whom the request does not name, are a 409 that lists them.`
const changeNote = `${gainNote} To add, remove or move members, or to remove roles, the flag or the parent, the caller must hold everything
that the group grants, inherited rights too, and everything that the users hold whom it adds, removes or moves. To rename a
group that grants anything, it must hold that too: documents find the group by its name.`

const groups = {
  path: '/core/groups/',
  summary: 'List groups',
  permission: 'view_group',
  view: groupView,
  count: 'kept',
  search: groupName,
  order: { name: 'name', num_pk: 'numPk', pk: 'pk', is_superuser: 'isSuperuser' },
  defaultOrder: 'name',
  filters: {
    attributes: filter.contains('attributes'),
    is_superuser: filter.isTrue('isSuperuser', 'Whether it makes superusers of its members.'),
    members_by_pk: filter.membersByPk,
    members_by_username: filter.membersByUsername,
    stack: filter.isInStack('service_core.group'),
    name: filter.unique('name'),
    pk: filter.isOneOfKeys('pk', 'uuid'),
  },
  include: { parameter: 'include_users', permission: seesMembers, field: 'users_obj' },
  one: { by: 'pk', parameter: 'group_uuid', key: 'uuid', displayName: 'group' },
} as const

/** The schema for the types and the description: answers are not validated. */
const full: z.ZodType<Group> = groupView.schema

type GroupWrite = Omit<Write, 'model' | 'requestId'>

/** The parameters of the answer, as a read has them: the members of a large group are a long answer. */
const answering = z.strictObject(includeParameter(groups))
type Answering = z.output<typeof answering>

export function groupRoutes(app: Api, db: Db, engine: Engine): void {
  const save = async (
    request: FastifyRequest<{ Querystring: Answering }>,
    reply: FastifyReply,
    change: GroupWrite,
  ): Promise<FastifyReply> => {
    const { actor, query, id: requestId } = request
    const uidOf = await readUidOf(db)
    const reading = { uidOf, related: isIncluded(groups, query, actor) }
    const read = (tx: Tx, pk: string | number) => readGroup(tx, String(pk), reading)
    const group = await write(db, engine, actor, { model, requestId, ...change }, read)
    // The answer is made after the commit: a long one waits for its client, and no other request waits for the group.
    const source = separately(db)
    const answer = await answerOf(reply, source, objectText(source, group), { of: 'write' }).catch((error: unknown) => {
      request.log.warn({ err: error }, 'a group was saved, and is answered without users_obj')
      return withoutUsers(group)
    })
    return sendWritten(reply, answer)
  }
  /** The group as a read with `include_users=false` answers it. The keys are read already: the rest cannot fail or wait. */
  const withoutUsers = async (group: object) => {
    const [source, shown] = [separately(db), { ...group, users_obj: null }]
    return (await shortText(source, shown)) ?? Readable.from(objectText(source, shown))
  }
  /** Checks the tags of both texts that reads answer to this caller: with users, and without. */
  const precondition = async (actor: Actor, headers: Headers, pk: string) => {
    const uidOf = await readUidOf(db)
    return preconditionOf(headers, 'group', (tx: Tx) =>
      Array.fromAsync(new Set([allows(actor, seesMembers), false]), async (related) =>
        tagOf(tx, await readGroup(tx, pk, { uidOf, related })),
      ),
    )
  }
  const allowedBy = (headers: Headers, ofText: ErrorList | undefined): Pick<Write, 'allow' | 'textErrors'> => {
    const textErrors = new ErrorList().include(ofText === undefined ? [] : [ofText])
    return { allow: readOwnership(headers, textErrors).allow, textErrors }
  }

  listAndOne(app, db, groups)

  app.post(
    '/core/groups/',
    {
      config: {
        permission: 'add_group',
        reportsTextErrors: true,
        document: {
          codes: ['conflict'],
          headers: allowHeaders,
          body: () => writable(engine.registry, model, 'create'),
          alsoNeeds: [...toGrant, toSee],
          answerHeaders: ['ETag'],
        },
      },
      schema: {
        summary: 'Create a group',
        description: grantNote,
        querystring: answering,
        body: z.unknown(),
        response: { 201: full },
      },
    },
    async (request, reply) => {
      const { body: fields, headers, textErrors } = request
      return save(request, reply.code(201), { mode: { create: true }, fields, ...allowedBy(headers, textErrors) })
    },
  )

  app.patch(
    '/core/groups/:group_uuid/',
    {
      config: {
        permission: 'change_group',
        reportsTextErrors: true,
        document: {
          codes: ['conflict', 'precondition_failed'],
          headers: matchHeaders.extend(allowHeaders.shape),
          body: () => writable(engine.registry, model, 'change'),
          alsoNeeds: [...toChange, toSee],
          answerHeaders: ['ETag'],
        },
      },
      schema: {
        summary: 'Change a group',
        description: changeNote,
        params: z.object({ group_uuid: z.guid().meta({ description: 'The `pk` of the group.' }) }),
        querystring: answering,
        body: z.unknown(),
        response: { 200: full },
      },
    },
    async (request, reply) => {
      const { params, actor, body: fields, headers, textErrors } = request
      const pk = params.group_uuid.toLowerCase()
      const conditions = { ...allowedBy(headers, textErrors), precondition: await precondition(actor, headers, pk) }
      return save(request, reply, { mode: { change: pk }, fields, ...conditions })
    },
  )
}
