import { randomUUID } from 'node:crypto'
import { describe, test } from 'vitest'
import { applied, installation } from '../../support/kit.ts'
import type { Ask } from './answers.ts'
import { type Row, rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

/** Stacks: their list, one of them, and the operation that lets a member go. */

const there = await installation()
const on = stage(there)

/** A stack of one group. */
async function made(): Promise<{ name: string; key: string }> {
  const name = randomUUID()
  await applied(there.admin.apply([{ model: 'service_core.group', identifiers: { name } }], { stack: name }))
  return { name, key: (await there.db.group.findUniqueOrThrow({ where: { name } })).pk }
}

const { name: known } = await made()

async function ask({ operation, whose }: Row, method: string): Promise<Ask> {
  const [, path = ''] = operation.split(' ')
  const { name, key } = method === 'DELETE' && whose === 'there' ? await made() : { name: known, key: randomUUID() }
  const url = (stack: string) =>
    path.replace(':name', stack).replace(':model', 'service_core.group').replace(':member', key)
  return {
    ...{ method, url: url(whose === 'there' ? name : randomUUID()), missing: url(randomUUID()) },
    ...(method === 'GET' && !path.includes(':') && { shows: ({ text }) => (text.includes(known) ? 'listed' : 'none') }),
  }
}

/** HEAD has no body that could show objects. */
const without = (row: Row): Row => ({
  ...row,
  cells: Object.fromEntries(Object.entries(row.cells).map(([column, cell]) => [column, cell.replace(/ .*/, '')])),
})

describe.each(['GET', 'HEAD'])('%s', async (method) => {
  test.each(await rowsOf('GET /api/v3/blueprints/stacks/'))('%s', (_, row) =>
    on.try(method === 'HEAD' ? without(row) : row, (each) => ask(each, method)),
  )
})

test.each(await rowsOf('DELETE /api/v3/blueprints/stacks/'))('%s', (_, row) =>
  on.try(row, (each) => ask(each, 'DELETE')),
)
