import { z } from 'zod'
import type { Engine } from '../blueprint/inspect.ts'
import { writable } from '../blueprint/writable.ts'
import { write } from '../blueprint/write.ts'
import { type Db, reading } from '../db/client.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { groupView } from '../views/group.ts'
import { readOne } from '../views/rows.ts'
import type { Row, View } from '../views/view.ts'

/** POST /api/v3/core/groups/, PATCH /api/v3/core/groups/{group_uuid}/ */

const model = 'service_core.group'

/** Answers are what the view makes of rows: nothing is validated on the way out. */
const full: View['schema'] = groupView.schema

export function groupRoutes(app: Api, db: Db, engine: Engine): void {
  async function answer(pk: string | number): Promise<Row> {
    const group = await reading(db, (q) => readOne(q, groupView, pk))
    if (group === undefined) throw new Problem('not_found', 'It was saved, and then deleted by somebody else.')
    return group
  }

  app.post(
    '/core/groups/',
    {
      config: {
        permission: 'add_group',
        tellsTextFaults: true,
        document: { body: () => writable(engine.registry, model, 'create') },
      },
      schema: { summary: 'Create a group', body: z.unknown(), response: { 201: full } },
    },
    async ({ actor, body: members, textFaults, id: requestId }, reply) => {
      const pk = await write(db, engine, actor, { model, mode: { create: true }, members, textFaults, requestId })
      return reply.code(201).send(await answer(pk))
    },
  )

  app.patch(
    '/core/groups/:group_uuid/',
    {
      config: {
        permission: 'change_group',
        tellsTextFaults: true,
        document: { body: () => writable(engine.registry, model, 'change') },
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
      return reply.send(await answer(await write(db, engine, actor, { model, mode, members, textFaults, requestId })))
    },
  )
}
