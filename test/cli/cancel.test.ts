import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, exited, freshFolder, listening, until } from '../support/kit.ts'

/** `gatewright runs cancel`, and `cancel`, its former name, while an apply in another process waits for the run. */

const folder = freshFolder()
const there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })
const alice = await there.on.make.user({ permissions: ['view_run', 'manage_queue'] })

/** @param more groups beside the one of this name */
function groups(name: string, more = 0): string {
  const path = join(folder, `${name}.yaml`)
  const names = [name, ...Array.from({ length: more }, (_, index) => `${name} ${index}`)]
  const entries = names.map((each) => `  - { model: service_core.group, identifiers: { name: "${each}" } }\n`)
  writeFileSync(path, `version: 1\nmetadata: { name: ${name} }\nentries:\n${entries.join('')}`)
  return path
}

async function queuedId(name: string): Promise<string> {
  const where = { title: `apply blueprint ${name}`, state: 'queued' } as const
  return until('the run to be recorded', async () => (await there.on.db.run.findFirst({ where }))?.id)
}

test.each([
  ['answers', 'waited', 0],
  ['answers at once with 202', 'followed', 2_000],
])(
  'an apply that the service %s ends with 1 and says who cancelled its run, which is never applied',
  async (_, name, more) => {
    const release = there.on.hold()
    const applying = there.start(['apply', groups(name, more)])
    const id = await queuedId(name)
    if (more > 0) await applying.line(/^waiting: run \S+ is queued/)
    expect((await exited(0, there.gatewright(['runs', 'cancel', id], { GATEWRIGHT_TOKEN: alice.token }))).output).toBe(
      `${id}  apply blueprint ${name}: cancelled by ${alice.username}\n`,
    )
    expect(await applying.exited).toMatchObject({ code: 1 })
    expect(applying.output()).toMatch(new RegExp(`^refused +\\S+${name}\\.yaml`, 'm'))
    expect(applying.output()).toContain(`cancelled by ${alice.username}`)
    release()
    expect(await there.gatewright(['apply', groups(`${name}-later`)])).toMatchObject({ code: 0 })
    expect(await there.on.db.group.count({ where: { name } })).toBe(0)
    expect(await there.on.db.run.count({ where: { title: `apply blueprint ${name}` } })).toBe(1)
    await exited(1, there.gatewright(['logs', id]), `not applied: cancelled by ${alice.username}\n`)
    // The same again, as after an answer that was lost.
    expect(await there.gatewright(['cancel', id, '--json'])).toEqual({ code: 0, output: expect.stringContaining(id) })
  },
)

test('a run that has ended, and what is no run: 1', async () => {
  const { output } = await there.gatewright(['apply', groups('ended'), '--json'])
  const [, id = ''] = /"run": "\S+runs\/([-0-9a-f]{36})\/"/.exec(output) ?? []
  const refused = (message: string) => ({ code: 1, output: expect.stringContaining(message) })
  expect(await there.gatewright(['runs', 'cancel', id])).toEqual(refused('This run has ended: applied.'))
  expect(await there.gatewright(['runs', 'cancel', 'grafana'])).toEqual(refused('"grafana" is no id of a run'))
  expect(await there.gatewright(['cancel'])).toEqual(refused('runs cancel takes the id of one run.'))
})
