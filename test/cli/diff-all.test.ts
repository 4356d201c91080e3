import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adminToken, exited, freshFolder, listening, named } from '../support/kit.ts'

/** `gatewright plan --full`, also by its former name `diff`, `plan --reset` and `apply --reset`, as processes, against a server that listens. */

const folder = freshFolder()
const { gatewright, on } = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })

/** A folder with a file for each application. */
async function repository(name: string, slugs: readonly string[]): Promise<string> {
  const path = join(folder, name)
  mkdirSync(path)
  for (const slug of slugs) {
    const { provider, ...body } = await named('oauth2', slug)
    const { authorization_flow } = provider
    const content = { ...body, app: { slug, name: 'A' }, provider: { name: slug, authorization_flow } }
    writeFileSync(join(path, `${slug}.json`), JSON.stringify(content))
  }
  return path
}

test('diff --all is plan --full --reset: what the files do not name is compared with its defaults', async () => {
  const files = await repository('one', ['shop', 'wiki'])
  const owner = { GATEWRIGHT_OWNER: 'team-a' }
  expect(await gatewright(['apply', files], owner)).toMatchObject({ code: 0 })
  expect(await gatewright(['diff', files, '--all'], owner)).toMatchObject({ code: 0 })
  await on.db.application.update({ where: { slug: 'shop' }, data: { metaDescription: 'by hand' } })

  expect(await gatewright(['diff', files], owner)).toMatchObject({ code: 0 })
  const diff = await exited(2, gatewright(['diff', files, '--all', '--summary', join(folder, 'summary.md')], owner))
  expect(diff.output).toContain(
    `\n~ service_core.application "shop" (${join(files, 'shop.json')})\n  - meta_description: "by hand"\n  + meta_description: ""\n3 unchanged in 2 files\n`,
  )
  expect((await gatewright(['plan', files, '--full', '--reset'], owner)).output).toBe(diff.output)

  await exited(2, gatewright(['plan', files, '--reset', '--out', join(folder, 'plans.json')], owner))
  const without = await gatewright(['apply', files, '--plan-file', join(folder, 'plans.json')], owner)
  expect(without).toMatchObject({ code: 1, output: expect.stringContaining('apply it with --reset, too') })
  await exited(0, gatewright(['apply', files, '--reset', '--plan-file', join(folder, 'plans.json')], owner))
  expect(await on.db.application.findUnique({ where: { slug: 'shop' } })).toMatchObject({ metaDescription: '' })
})

test('a line that is removed from a file: no longer managed, in plan and diff', async () => {
  const files = await repository('four', ['desk'])
  const stack = ['--stack', 'desks']
  const path = join(files, 'desk.json')
  const file = readFileSync(path, 'utf8')
  const { app, ...body } = JSON.parse(file)
  writeFileSync(path, JSON.stringify({ ...body, app: { ...app, meta_description: 'gone from the file' } }))
  expect(await gatewright(['apply', files, ...stack])).toMatchObject({ code: 0 })
  writeFileSync(path, file)
  const line = 'application "desk": meta_description is no longer managed, keeps "gone from the file"'
  for (const command of ['plan', 'diff']) {
    const { code, output } = await gatewright([command, files, ...stack])
    expect([code, output.split(line).length]).toEqual([0, 2])
  }
})
