import { z } from 'zod'
import { auditRow } from '../apply/audit.ts'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { queryText } from '../lists/filters.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { stacksOf } from '../permissions.ts'
import { allowsRow } from '../plan/effect.ts'
import { mostStacks, readStack, readStacks, stackDetail, stackSummary } from '../views/stack.ts'

/** GET /api/v3/blueprints/stacks/, GET /api/v3/blueprints/stacks/{name}/, DELETE .../members/{model}/{key}/ */

const description = `What one repository manages, by the name that its documents send as \`Gatewright-Stack\`. Counts and objects are
those that the caller may know.`

const name = queryText(100).overwrite(comparedName).meta({ description: 'The name of the stack.' })

export function stackRoutes(app: Api, db: Db, registry: Registry): void {
  app.get(
    '/blueprints/stacks/',
    {
      config: { permission: 'authenticated', document: { verb: 'read_all' } },
      schema: {
        summary: 'List stacks',
        description: `${description} The first ${mostStacks}, by name.`,
        querystring: z.strictObject({}),
        response: { 200: z.object({ results: z.array(stackSummary) }).meta({ id: 'Stacks' }) },
      },
    },
    async ({ actor }) => ({ results: await inTime(readStacks(db, registry, actor)) }),
  )
  app.get(
    '/blueprints/stacks/:name/',
    {
      config: { permission: 'authenticated', document: { codes: ['not_found'] } },
      schema: {
        summary: 'Read a stack',
        description,
        params: z.object({ name }),
        querystring: z.strictObject({}),
        response: { 200: stackDetail },
      },
    },
    async ({ params, actor }) => {
      const stack = await inTime(readStack(db, registry, actor, params.name))
      if (stack === undefined) throw noSuchStack()
      return stack
    },
  )
  app.delete(
    '/blueprints/stacks/:name/members/:model/:key/',
    {
      config: { permission: 'authenticated', document: { codes: ['not_found', 'permission_denied'] } },
      schema: {
        summary: 'Let an object stay without its stack',
        description:
          'The object stays as it is, and is in no stack then. It takes the permission to change the object.',
        params: z.object({
          name,
          model: queryText(100).meta({ description: 'The model of the object, such as `service_core.group`.' }),
          key: queryText(100).meta({ description: 'The key of the object.' }),
        }),
        response: { 204: z.null() },
      },
    },
    async ({ params, actor, id: requestId }, reply) => {
      const stack = await inTime(readStack(db, registry, actor, params.name))
      const member = stack?.members.find(({ model, key }) => model === params.model && key === params.key)
      const model = member && registry.byName(member.model)
      if (member === undefined || model === undefined) throw noSuchStack()
      const needed = `change_${model.resource}` as const
      if (stacksOf(actor)?.has(params.name) === false)
        throw new Problem('permission_denied', 'The token is bound to other stacks.')
      if (!allowsRow(actor, needed, model, member.owner))
        throw new Problem(
          'permission_denied',
          `You may not change ${model.displayName} ${JSON.stringify(member.name)}: the permission ${needed} is missing.`,
          {
            missing: [needed],
          },
        )
      const { name: stackName } = params
      const change = { model: member.model, key: member.key, action: 'update', fields: ['stack'] } as const
      const done = await inTime(
        db.$transaction([
          db.stackMember.deleteMany({ where: { model: member.model, key: member.key, stackName } }),
          db.auditRow.create({ data: auditRow({ actor, action: 'forget_member', changes: [change], requestId }) }),
        ]),
      )
      if (done[0].count === 0) throw noSuchStack()
      return reply.code(204).send(null)
    },
  )
}

const noSuchStack = () => new Problem('not_found', 'There is no such stack, or it has no such object.')
