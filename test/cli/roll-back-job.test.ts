import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { adminToken } from '../support/engine.ts'
import { freshFolder } from '../support/folder.ts'
import { type Listening, listening } from '../support/gatewright.ts'
import { type Installation, named } from '../support/installation.ts'

/** `plan` and `apply --rollback-request`: what stood before all runs of one job, as processes. */

const folder = freshFolder()
let on: Installation
let there: Listening
beforeAll(async () => {
  there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })
  on = there.on
})

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(content))
  return path
}

const group = (name: string, floor: number, more: object = {}) => ({
  version: 1,
  metadata: { name },
  entries: [{ model: 'service_core.group', identifiers: { name }, attrs: { attributes: { floor } }, ...more }],
})

/** A job: each file is a run of its own. */
async function job(id: string, files: string[], more: string[] = []): Promise<void> {
  const { code, output } = await there.gatewright(['apply', '--each', ...more, ...files], { GATEWRIGHT_REQUEST_ID: id })
  expect(code, output).toBe(0)
}

const rollBack = (command: string, id: string, ...more: string[]) =>
  there.gatewright([command, '--rollback-request', id, ...more])
const floorOf = async (name: string) => Object((await on.db.group.findUnique({ where: { name } }))?.attributes).floor
const groupOf = async (slug: string) => (await on.db.application.findUniqueOrThrow({ where: { slug } })).group
const runs = () => on.db.run.count({ where: { mode: 'apply' } })

test('puts back what stood before each run of the job, lists what it created, and deletes that when it is asked to', async () => {
  const app = async (of: string) => file('app.json', await named('oauth2', 'rb-app', { app: { group: of } }))
  await job('job-before', [
    await app('First'),
    file('one.json', group('rb-one', 1)),
    file('two.json', group('rb-two', 1)),
  ])
  await job('job-other', [file('two.json', group('rb-two', 2))])
  await job('job-now', [
    await app('Second'),
    file('one.json', group('rb-one', 2)),
    file('new.json', group('rb-new', 1)),
    file('newer.json', group('rb-newer', 1, { attrs: { parent: 'rb-new' } })),
  ])
  // Twice in one job.
  await job('job-now', [file('one.json', group('rb-one', 3))])

  const before = await runs()
  const plan = await rollBack('plan', 'job-now')
  expect(plan).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^changes +run .*\n.* updated: group "Second" -> "First"/ms),
  })
  const created = [
    / service_core\.group "rb-newer" was created by run \S+, and no run before the job names it\n/,
    / service_core\.group "rb-new" was created by run \S+, and no run before the job names it\n/,
    / --allow-deletes 2 deletes what the job created\.\n/,
  ]
  for (const line of created) expect(plan.output).toMatch(line)
  expect([await runs(), await groupOf('rb-app')]).toEqual([before, 'Second'])

  const wrong = await rollBack('apply', 'job-now', '--allow-deletes', '3')
  expect(wrong).toEqual({ code: 1, output: expect.stringMatching(/^--allow-deletes 3: the job created 2 objects /) })
  expect(await runs()).toBe(before)

  const back = await rollBack('apply', 'job-now')
  expect(back.code).toBe(1)
  for (const line of created) expect(back.output).toMatch(line)
  expect([await groupOf('rb-app'), await floorOf('rb-one'), await floorOf('rb-two')]).toEqual(['First', 1, 2])
  expect(await on.db.group.count({ where: { name: { startsWith: 'rb-new' } } })).toBe(2)

  const all = await rollBack('apply', 'job-now', '--allow-deletes', '2')
  expect(all).toMatchObject({ code: 0, output: expect.stringMatching(/^applied +what the job created\n/m) })
  expect(await on.db.group.count({ where: { name: { startsWith: 'rb-new' } } })).toBe(0)
})

test('what a job deleted is there again, and a plan file is of each run', async () => {
  await job('gone-before', [file('gone.json', group('rb-gone', 7))])
  await job('gone', [file('goes.json', group('rb-gone', 7, { state: 'absent', attrs: {} }))])
  expect(await floorOf('rb-gone')).toBeUndefined()
  const plans = join(folder, 'plans.json')
  expect(await rollBack('plan', 'gone', '--out', plans)).toMatchObject({ code: 2 })
  const done = await rollBack('apply', 'gone', '--plan-file', plans, '--json')
  expect({ code: done.code, floor: await floorOf('rb-gone') }).toEqual({ code: 0, floor: 7 })
  expect(JSON.parse(done.output).results).toMatchObject([{ file: expect.stringMatching(/^run /), outcome: 'applied' }])
})

describe('refused', () => {
  const refused = (message: string) => ({ code: 1, output: expect.stringContaining(message) })

  test('a job of which nothing was applied, files beside it, and the request ID of the job', async () => {
    expect(await rollBack('apply', 'no-job')).toEqual(refused('No run of the request ID "no-job" was applied'))
    expect(await rollBack('apply', 'no-job', 'a.json')).toEqual(
      refused('Use either files, --run or --rollback-request.'),
    )
    expect(await there.gatewright(['apply', '--rollback-request', 'me'], { GATEWRIGHT_REQUEST_ID: 'me' })).toEqual(
      refused('GATEWRIGHT_REQUEST_ID is that of the job'),
    )
  })

  test("another user's runs without roll_back_run; runs that the caller does not see are none", async () => {
    await job('theirs-before', [file('theirs.json', group('rb-theirs', 1))])
    await job('theirs', [file('theirs.json', group('rb-theirs', 2))])
    const permissions = ['view_run', 'view_group', 'change_group']
    const { token } = await on.make.user({ permissions })
    const as = (other: string) =>
      there.gatewright(['apply', '--rollback-request', 'theirs'], { GATEWRIGHT_TOKEN: other })
    expect(await as(token)).toEqual(refused("To apply another user's run again you need the permission roll_back_run."))
    expect(await as((await on.make.user()).token)).toEqual(refused('was applied: gatewright runs'))
    const able = await on.make.user({ permissions: [...permissions, 'roll_back_run'] })
    expect(await as(able.token)).toMatchObject({ code: 0 })
    expect(await floorOf('rb-theirs')).toBe(1)
  })
})

test('a run shows the one before it when that is asked for, as far as the caller sees it', async () => {
  await job('seen-before', [file('seen.json', group('rb-seen', 1))])
  const { pk, token } = await on.make.user({ permissions: ['view_group', 'change_group'] })
  await job('seen', [file('seen.json', group('rb-seen', 2))])
  const idOf = async (requestId: string) => (await on.db.run.findFirstOrThrow({ where: { requestId } })).id
  const [before, id] = [await idOf('seen-before'), await idOf('seen')]
  const path = `/api/v3/blueprints/runs/${id}/`
  expect(await on.admin.get(path)).toMatchObject({ json: { earlier_run: null } })
  expect(await on.admin.get(`${path}?include_earlier_run=true`)).toMatchObject({ json: { earlier_run: before } })
  await on.db.run.update({ where: { id }, data: { submitterPk: pk } })
  expect(await on.as(token).get(`${path}?include_earlier_run=true`)).toMatchObject({ json: { id, earlier_run: null } })
})
