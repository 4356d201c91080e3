import { beforeAll, beforeEach, expect, test } from 'vitest'
import { toValues } from '../../src/plan/storage.ts'
import {
  adminToken,
  aProvider,
  applied,
  freshFolder,
  type Listening,
  listening,
  name,
  writerTo,
} from '../support/kit.ts'

/** Secrets that a file keeps: `{"set": true}`, as answers show them, and the mask of 0.2.0. */

let there: Listening
beforeAll(async () => {
  there = await listening(
    { GATEWRIGHT_TOKEN: adminToken, DATA_DIR: freshFolder(), SHOP_SECRET: '********' },
    'src/cli/gatewright.ts',
  )
})

const file = writerTo(freshFolder())
const secret = 'a secret of twenty letters'
const flow = 'default-authorization-implicit'
const model = 'service_providers_oauth2.oauth2provider'

const document = (client_secret: string, of = name) =>
  file(
    'a.yaml',
    `version: 1
entries:
  - model: ${model}
    identifiers: { name: ${of} }
    attrs:
      authorization_flow: ${flow}
      client_secret: ${client_secret}
`,
  )

const stored = async () => {
  const row = await there.on.db.provider.findUniqueOrThrow({ where: { name } })
  const registered = there.on.engine.registry.byName(model) ?? expect.fail()
  const { pk, uuid, settings, secrets } = row
  return toValues(registered, { pk, uuid, settings, secrets }, there.on.engine.keyring).client_secret
}

beforeEach(async () => {
  await applied(there.on.admin.apply([aProvider('oauth2', name, { authorization_flow: flow, client_secret: secret })]))
})

const warning = () => `warning: the sent client_secret of provider oauth2 "${name}" is the mask of older versions`

test.each([
  ['{ set: true }', false],
  ["'********'", true],
  ['!Env SHOP_SECRET', true],
  ['{ create: !Env SHOP_SECRET }', true],
  ['{ value: !Env SHOP_SECRET, overlap: hours=1 }', true],
])('%s changes nothing, and a new object is refused', async (form, isMask) => {
  for (const command of ['plan', 'diff', 'apply']) {
    const { code, output } = await there.gatewright([command, document(form)])
    expect([command, code]).toEqual([command, 0])
    expect(output).toContain('unchanged')
    if (command === 'apply') expect(output.includes(warning())).toBe(isMask)
  }
  expect(await stored()).toBe(secret)
  const refused = await there.gatewright(['apply', document(form, `${name}-b`)])
  expect(refused).toMatchObject({ code: 1 })
  expect(refused.output).toContain('There is no secret to keep: send one, or leave this field out.')
})

test('an export has variables for secrets, and an import keeps the form', async () => {
  const exported = await there.gatewright(['export'])
  expect(exported.output).toContain('!Env')
  expect(exported.output).not.toMatch(/\*{8}|set: true/)
  for (const form of ['{ set: true }', "'********'"]) {
    const imported = await there.gatewright(['import', document(form)])
    expect(imported).toMatchObject({ code: 0 })
    const path = file('imported.yaml', imported.output.slice(imported.output.indexOf('version: 1')))
    expect((await there.gatewright(['apply', path])).output).toContain('unchanged')
    expect(await stored()).toBe(secret)
  }
})
