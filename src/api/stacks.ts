import { z } from 'zod'
import { auditRow } from '../apply/audit.ts'
import { lockStack } from '../apply/execute.ts'
import { type Db, patient, transaction } from '../db/client.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { isOneOfKeys, queryText } from '../lists/filters.ts'
import { ambiguous, listAndOne } from '../lists/one.ts'
import { stackName } from '../lists/tables.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { allowsRow, isOutOfBonds, seesAllRuns } from '../permissions.ts'
import { membersSeen, readMembers, stackView } from '../views/stack.ts'

/** GET /api/v3/blueprints/stacks/, GET /api/v3/blueprints/stacks/{name}/, DELETE .../members/{model}/{member}/ */

const description = `The object stays as it is, and is in no stack then. It takes the permission to change the object, and waits for an
apply of the stack that is at work.`

export function stackRoutes(app: Api, db: Db, registry: Registry): void {
  // Those without an object that the caller may know are for callers who see all runs.
  listAndOne(app, db, {
    path: '/blueprints/stacks/',
    summary: 'List stacks',
    description:
      'What one repository manages, by the name that its documents send as `Gatewright-Stack`. Counts and objects are those that the caller may know.',
    permission: 'authenticated',
    view: stackView(registry),
    seen: (actor, bind) =>
      seesAllRuns(actor) ? null : `EXISTS (${membersSeen(registry, actor, 'm.stack = stacks.name', bind)})`,
    count: 'rows',
    search: stackName,
    order: { name: 'name', created_at: 'createdAt' },
    defaultOrder: 'name',
    filters: { name: isOneOfKeys('name', 'text') },
    one: { by: 'name', fold: comparedName, view: stackView(registry, true), displayName: 'stack' },
  })

  app.delete(
    '/blueprints/stacks/:name/members/:model/:member/',
    {
      config: { permission: 'authenticated', document: { codes: ['not_found', 'permission_denied'] } },
      schema: {
        summary: 'Let an object stay without its stack',
        description,
        params: z.object({
          name: queryText().overwrite(comparedName).meta({ description: 'The name of the stack.' }),
          model: queryText(100).meta({ description: 'The model of the object: `service_core.group`, or `group`.' }),
          member: queryText().meta({ description: 'The name of the object, as the stack shows it, or its key.' }),
        }),
        response: { 204: z.null() },
      },
    },
    async ({ params, actor, id: requestId }, reply) => {
      const { name: stack } = params
      const models = registry.models.filter(({ name, resource }) => [name, resource].includes(params.model))
      await transaction(
        db,
        async (tx) => {
          await lockStack(tx, stack)
          const called = params.member.normalize('NFC')
          const found = models.length === 0 ? [] : await readMembers(tx, { models }, actor, stack, called)
          const byKey = found.filter(({ key }) => key === called)
          const [member, other] = byKey.length > 0 ? byKey : found
          const model = models.find(({ name }) => name === member?.model)
          if (member === undefined || model === undefined) throw noSuchMember()
          if (other !== undefined) throw ambiguous('member', 'Several are called so: name it by its key.')
          const needed = `change_${model.resource}` as const
          if (isOutOfBonds(actor, stack)) throw new Problem('permission_denied', 'The token is bound to other stacks.')
          if (!allowsRow(actor, needed, model, member.owner))
            throw new Problem(
              'permission_denied',
              `You may not change ${model.displayName} ${JSON.stringify(member.name)}: the permission ${needed} is missing.`,
              { missing: [needed] },
            )
          const { key } = member
          // Another stack may have taken it over: that does not wait for this one.
          const { count } = await tx.stackMember.deleteMany({ where: { model: model.name, key, stackName: stack } })
          if (count === 0) throw noSuchMember()
          const change = { model: model.name, key, action: 'update', fields: ['stack'] } as const
          await tx.auditRow.create({ data: auditRow({ actor, action: 'forget_member', changes: [change], requestId }) })
        },
        patient,
      )
      return reply.code(204).send(null)
    },
  )
}

const noSuchMember = () => new Problem('not_found', 'There is no such stack, or it has no such object.')
