import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { adminToken, freshFolder, listening, plainEnvironment, shellIn } from '../support/kit.ts'

/** The shipped CI files with a merge that removes an application: their plan lists the deletion, their apply makes it. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const there = await listening({})

const textsIn = (value: unknown): string[] =>
  typeof value === 'string'
    ? value.split('\n')
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(textsIn)
      : []

/** A folder `deploy`, which is a stack, and the program on the PATH. */
function workplace(stack: string) {
  const folder = freshFolder()
  mkdirSync(join(folder, 'deploy'))
  const program = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'src/cli/gatewright.ts')}' "$@"\n`
  writeFileSync(join(folder, 'gatewright'), program, { mode: 0o755 })
  writeFileSync(join(folder, 'deploy', 'gatewright.yaml'), `stack: ${stack}\n`)
  const write = (...slugs: string[]) =>
    writeFileSync(
      join(folder, 'deploy', 'apps.yaml'),
      `version: 1\nentries:\n${slugs
        .map(
          (slug) =>
            `  - { model: service_core.application, identifiers: { slug: ${slug} }, attrs: { name: ${slug} } }\n`,
        )
        .join('')}`,
    )
  return { folder, write, PATH: `${folder}:${plainEnvironment().PATH}` }
}

describe.each(['github-actions.yml', 'gitlab-ci.yml'])('docs/snippets/%s', (name) => {
  const text = readFileSync(join(root, 'docs/snippets', name), 'utf8')
  const commands = textsIn(load(text)).filter((each) => /^gatewright (plan|apply) /.test(each))
  const [plan = '', apply = ''] = [
    commands.findLast((each) => each.startsWith('gatewright plan')),
    commands.find((each) => each.startsWith('gatewright apply')),
  ]
  const start = name.slice(0, 6)
  const slugs = async () =>
    (await there.on.db.application.findMany({ where: { slug: { startsWith: start } }, orderBy: { slug: 'asc' } })).map(
      ({ slug }) => slug,
    )

  test('deletes what its plan lists, without a number, and nothing that came meanwhile', async () => {
    const { folder, write, PATH } = workplace(start)
    const env = {
      ...{ PATH, GATEWRIGHT_URL: there.address, GATEWRIGHT_TOKEN: adminToken, GATEWRIGHT_OWNER: `owner-${start}` },
      GITHUB_STEP_SUMMARY: join(folder, 'summary.md'),
    }
    const job = (commands: string) => shellIn(folder)(commands, env)
    write(`${start}-kept`, `${start}-gone`)
    expect(await job(`${plan}\n${apply}`)).toMatchObject({ code: 0 })
    expect(await slugs()).toEqual([`${start}-gone`, `${start}-kept`])

    write(`${start}-kept`)
    const planned = await job(plan)
    expect(planned).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^0 to add, 0 to change, 1 to delete\nleft over\n- .*\n1 unchanged in 1 file\n$/s),
    })
    expect(readFileSync(join(folder, 'summary.md'), 'utf8')).toContain(
      `**Deletes**\n\n- service_core.application "${start}-gone"\n`,
    )
    const late = `version: 1\nentries:\n  - { model: service_core.application, identifiers: { slug: ${start}-late }, attrs: { name: late } }\n`
    writeFileSync(join(folder, 'late.yaml'), late)
    expect(await job('gatewright apply late.yaml')).toMatchObject({ code: 0 })
    expect(await job(apply)).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^0 added, 0 changed, 1 deleted, 1 unchanged$/m),
    })
    expect(await slugs()).toEqual([`${start}-kept`, `${start}-late`])
  })
})
