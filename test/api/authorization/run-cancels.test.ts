import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import { uuid7 } from '../../../src/ids.ts'
import { installation, type Made } from '../../support/kit.ts'
import { rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

const there = await installation({ workers: 'none' })
const on = stage(there)

const operation = 'POST /api/v3/blueprints/runs/:id/cancel/'

/** A run that waits: submitted by the admin, and assigned, because not every actor may submit one. */
async function waiting(self?: Made): Promise<string> {
  const headers = { prefer: 'respond-async' }
  const { headers: answered } = await there.admin.submit('rac', 'waits', { headers })
  const [id = ''] = answered.location?.match(/[-0-9a-f]{36}/) ?? []
  if (self !== undefined) await there.db.run.update({ where: { id }, data: { submitterPk: self.pk } })
  return id
}

test.each(await rowsOf(operation))('who may cancel a run: %s', (_, row) =>
  on.try(row, async ({ whose }, { self }) => {
    const path = (id: string) => operation.replace(/^POST /, '').replace(':id', id)
    const known = { 'not there': randomUUID(), 'no uuid': 'no-uuid' }[whose]
    const id = known ?? (await waiting(whose === 'own' ? self : undefined))
    return { method: 'POST', url: path(id), ...(whose !== 'no uuid' && { missing: path(uuid7()) }) }
  }),
)
