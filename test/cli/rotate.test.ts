import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { adminToken } from '../support/engine.ts'
import { freshFolder } from '../support/folder.ts'
import { type Listening, listening } from '../support/gatewright.ts'
import { named } from '../support/installation.ts'

/** `gatewright rotate`: what it says of the files, and its JSON. */

const folder = freshFolder()
let there: Listening
beforeAll(async () => {
  there = await listening({ GATEWRIGHT_TOKEN: adminToken }, 'src/cli/gatewright.ts')
})

const secret = 'a secret of more than twenty characters'

type Form = 'value' | 'create' | 'generate' | 'overlap' | 'nothing'
const forms: Readonly<Record<Form, unknown>> = {
  value: secret,
  create: { create: secret },
  generate: { generate: true },
  overlap: { value: secret, overlap: 'hours=1' },
  nothing: undefined,
}

/** Applies a submission, or the same as a document of entries. @returns the id of the run */
async function applied(slug: string, form: Form, isSet = false): Promise<string> {
  const { app, provider, provider_model } = await named('oauth2', slug, {
    provider: { client_secret: forms[form], client_id: undefined },
  })
  const { name, ...attrs } = provider
  const { slug: _, ...ofApp } = app
  const set = {
    version: 1,
    entries: [
      { model: provider_model, identifiers: { name }, attrs },
      { model: 'service_core.application', identifiers: { slug }, attrs: { ...ofApp, provider: name } },
      { model: 'service_core.group', identifiers: { name: `${slug}-users` } },
    ],
  }
  const path = join(folder, `${slug}.json`)
  writeFileSync(path, JSON.stringify(isSet ? set : { app, provider, provider_model }))
  const { code, output } = await there.gatewright(['apply', path, '--json'])
  expect(code, output).toBe(0)
  return JSON.parse(output).results[0].run.split('/').at(-2)
}

const rotated = async (slug: string) => {
  const { code, output } = await there.gatewright(['rotate', slug])
  expect(code, output).toBe(0)
  return output.replace(/\s+/g, ' ')
}

describe.each([false, true])('after a document of entries: %s, rotate', (isSet) => {
  const slugOf = (form: Form) => `rotate-${form}-${isSet ? 'set' : 'single'}`

  test('names the run that sends the secret as a plain value', async () => {
    const id = await applied(slugOf('value'), 'value', isSet)
    const sentence = new RegExp(
      `The file of run ${id} \\(apply .*, \\d{4}-\\S+\\) sends client_secret as a plain value: its next apply puts that value back`,
    )
    expect(await rotated(slugOf('value'))).toMatch(sentence)
    // A rotation is no file: the second one says the same.
    expect(await rotated(slugOf('value'))).toMatch(sentence)
    const later = await applied(slugOf('value'), 'overlap', isSet)
    expect(await rotated(slugOf('value'))).toContain(`The file of run ${later} `)
  })

  test('names the run whose document generates one each time', async () => {
    const id = await applied(slugOf('generate'), 'generate', isSet)
    expect(await rotated(slugOf('generate'))).toMatch(
      new RegExp(
        `The file of run ${id} .* sends client_secret: \\{generate: true\\}: its next apply makes another one`,
      ),
    )
  })

  test.each(['create', 'nothing'] as const)('says nothing of a file that sends %s', async (form) => {
    await applied(slugOf(form), form, isSet)
    expect(await rotated(slugOf(form))).not.toMatch(/The file|A file|client_secret:/)
    // What it says is so.
    const { output } = await there.gatewright(['diff', join(folder, `${slugOf(form)}.json`)])
    expect(output).toMatch(/^0 to add, 0 to change, 0 to delete/)
  })
})

test('says in general what a plain value does when the run of the file cannot be read', async () => {
  await applied('rotate-hidden', 'value')
  const permissions = ['application', 'oauth2provider'].flatMap((each) =>
    ['view', 'add', 'change'].map((action) => `${action}_${each}`),
  )
  const { token } = await there.on.make.user({ permissions })
  const { code, output } = await there.gatewright(['rotate', 'rotate-hidden', '--allow-takeover'], {
    GATEWRIGHT_TOKEN: token,
  })
  expect(code, output).toBe(0)
  expect(output).toContain('A file that has client_secret as a plain value puts that value back at its next apply')
})

test('--json is one document, with the secret that is in force', async () => {
  const id = await applied('rotate-json', 'value')
  const { code, output } = await there.gatewright(['rotate', 'rotate-json', '--json'])
  expect(code).toBe(0)
  const found = JSON.parse(output)
  expect(found).toEqual({
    ...{ exit: 0, outcome: 'applied', errors: [], logs: expect.arrayContaining([expect.any(String)]) },
    run: expect.stringMatching(/^\/api\/v3\/blueprints\/runs\/[\da-f-]{36}\/$/),
    client_secret: expect.stringMatching(/^\S{30,}$/),
    last_document: { run: id, title: 'apply oauth2 rotate-json', at: expect.any(String), sends: 'value' },
  })
  const path = join(folder, 'rotate-json-after.json')
  const body = await named('oauth2', 'rotate-json', {
    provider: { client_secret: found.client_secret, client_id: undefined },
  })
  writeFileSync(path, JSON.stringify(body))
  expect(await there.gatewright(['plan', path])).toMatchObject({ code: 0 })
  const refused = await there.gatewright(['rotate', 'rotate-json', '--json', '--owner', 'team-a'], {
    GATEWRIGHT_TOKEN: (await there.on.make.user({ permissions: ['view_application', 'change_oauth2provider'] })).token,
  })
  expect(refused.code, refused.output).toBe(1)
  expect(JSON.parse(refused.output)).toMatchObject({ exit: 1, outcome: 'refused', client_secret: null })
})
