import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import { uuid7 } from '../../../src/ids.ts'
import { type Answer, installation, type Made } from '../../support/kit.ts'
import { toldApplied } from './apply-cases.ts'
import { rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

const there = await installation()
const on = stage(there, toldApplied)

const operation = 'POST /api/v3/blueprints/runs/:id/apply/'
const documents: Readonly<Record<string, () => Promise<Answer>>> = {
  rac: async () => there.admin.submit('rac', 'again'),
  blueprint: () =>
    there.admin.put('/api/v3/blueprints/', {
      version: 1,
      metadata: { name: 'again' },
      entries: [{ model: 'service_core.group', identifiers: { name: 'again' } }],
    }),
}

/** Submitted by the admin, and assigned: not every actor may submit one. */
const runs = new Map<string, string>()
async function runOf(value: string, self?: Made): Promise<string> {
  const known = runs.get(`${value} ${self?.pk}`)
  if (known !== undefined) return known
  const answer = await documents[value]?.()
  const [id = ''] = answer?.headers['content-location']?.match(/[-0-9a-f]{36}/) ?? []
  // Another run of the same document takes it over: the ones before read it there.
  if (self !== undefined) await there.db.run.update({ where: { id }, data: { submitterPk: self.pk } })
  runs.set(`${value} ${self?.pk}`, id)
  return id
}

test.each(await rowsOf(operation))('who may apply a former run again: %s', (_, row) =>
  on.try(row, async ({ whose, value }, { self, asker, headers: own }) => {
    const path = (id: string) => operation.replace(/^POST /, '').replace(':id', id)
    const isThere = whose !== 'not there'
    const id = isThere ? await runOf(value, whose === 'own' ? self : undefined) : randomUUID()
    // The run of another is applied from a plan only.
    if (whose !== "another's") return { method: 'POST', url: path(id), missing: path(uuid7()) }
    const plan = await asker.send({ method: 'POST', url: `${path(id)}?dry_run=true`, headers: own ?? {} })
    const headers = { 'if-match': plan.headers.etag ?? `"${'A'.repeat(22)}"` }
    return { method: 'POST', url: path(id), missing: path(uuid7()), headers }
  }),
)
