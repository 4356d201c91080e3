import { expect, test } from 'vitest'
import { answered, installation, rows, sql } from '../support/kit.ts'
import { operatorOf, runOf } from '../support/operations.ts'

/** The pages of a plan, and of a run that waits while the queue is paused. */

const there = await installation({ applyWaitMs: 60_000 })

const textOf = (body: string) => body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
const lineOf = (body: string, run: string) =>
  textOf(body.match(new RegExp(`<tr id="run-${run}".*?</tr>`, 's'))?.[0] ?? '')

test('a plan says what it would do, and lists show no line of its log as a reason', async () => {
  const { get } = await operatorOf(there)
  await answered(200, there.admin.submit('radius', 'planned', { query: 'dry_run=true' }))
  const { id } = await runOf(there, 'planned')
  const page = textOf((await get(`/admin/runs/${id}/`)).body)
  expect(page).toContain('planned It would do this: 2 created.')
  expect(page).toContain('Changes that it would make: 2 created')
  expect(page).toContain('a plan: nothing was kept')
  const [{ line = '' } = {}] = await rows<{ line: string }>(
    there.db,
    sql`SELECT logs[1] AS line FROM runs WHERE id = ${id}::uuid`,
  )
  expect(line).not.toBe('')
  const list = async () => lineOf((await get('/admin/runs/')).body, id)
  expect(await list()).toContain('planned')
  expect(await list()).not.toContain(line)
  // One that was refused has a reason.
  await there.db.run.update({ where: { id }, data: { reason: 'conflict', logs: ['it-was-refused'] } })
  expect(await list()).toContain('it-was-refused')
})

test('a run that waits says by whom the queue is paused, until it is resumed', async () => {
  const { username, act, get } = await operatorOf(there)
  await act('pause', 'new disks')
  await answered(202, there.admin.submit('radius', 'waits', { prefer: 'respond-async' }))
  const { id } = await runOf(there, 'waits')
  const page = async () => textOf((await get(`/admin/runs/${id}/`)).body)
  expect(await page()).toMatch(
    new RegExp(
      `It has not ended\\. Not applied yet: the queue is paused, by ${username} since [\\d:]+ \\(&quot;new disks&quot;\\)\\. Resume it`,
    ),
  )
  await act('resume')
  await there.queued(0)
  expect(await page()).not.toContain('is paused')
})
