import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
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

/** Secrets whose variables are not set: a plan needs none of those that stand. */

let there: Listening
beforeAll(async () => {
  there = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: freshFolder() }, 'src/cli/gatewright.ts')
})

const folder = freshFolder()
const file = writerTo(folder)
const secret = 'a secret of twenty letters'
const flow = 'default-authorization-implicit'

const document = (client_secret: string, more = '') => `version: 1
entries:
  - model: service_providers_oauth2.oauth2provider
    identifiers: { name: ${name} }
    attrs:
      authorization_flow: ${flow}
      client_secret: ${client_secret}
${more}`

const stand = () =>
  applied(there.on.admin.apply([aProvider('oauth2', name, { authorization_flow: flow, client_secret: secret })]))
const line = () =>
  `client_secret of service_providers_oauth2.oauth2provider "${name}": not compared: NO_SECRET is not set`
const missing = (path: string, at: string) =>
  `${path}:${at} !Env: the variable NO_SECRET is not set, or is empty, and there is no default.`

describe('of what stands', () => {
  beforeEach(stand)

  test('it is not compared, and an apply is refused', async () => {
    const path = file('a.yaml', document('!Env NO_SECRET'))
    const planned = await there.gatewright(['plan', path])
    expect(planned).toMatchObject({ code: 0 })
    expect(planned.output).toMatch(/^0 to add, 0 to change, 0 to delete\n(?:.*\n)*1 unchanged in 1 file\n$/)
    expect(planned.output.split(line())).toHaveLength(2)
    const { output } = await there.gatewright(['plan', '--json', path])
    expect(JSON.parse(output).results[0].not_compared).toEqual([line()])
    expect((await there.gatewright(['diff', path])).output).toContain(line())
    const validated = await there.gatewright(['validate', path])
    expect(validated).toMatchObject({ code: 0 })
    expect(validated.output).not.toContain('NO_SECRET')
    const refused = await there.gatewright(['apply', path])
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.output).toContain(missing(path, '7:22'))
  })

  test.each([
    '{ value: !Env NO_SECRET, overlap: hours=24 }',
    '!Format ["%s-a", !Env NO_SECRET]',
    '!If [true, !Env NO_SECRET, other]',
    '!Env [NO_SECRET]',
  ])('also in %s, and beside other changes', async (form) => {
    const path = file('a.yaml', document(form, '      client_id: another'))
    const planned = await there.gatewright(['plan', path])
    expect(planned).toMatchObject({ code: 2 })
    expect(planned.output).toContain(line())
    expect(planned.output).toContain('1 to change')
    // Its tag is of another document than that of the apply.
    expect(planned.output).not.toMatch(/^ +plan [\w-]{22}$/m)
  })

  test('the plan is not applied by its file', async () => {
    const path = file('a.yaml', document('!Env NO_SECRET', '      client_id: another'))
    const out = join(freshFolder(), 'plans.json')
    await there.gatewright(['plan', '--out', out, path])
    expect(JSON.parse(readFileSync(out, 'utf8')).plans).toMatchObject([{ without: ['NO_SECRET'] }])
    const refused = await there.gatewright(['apply', '--plan-file', out, path], { NO_SECRET: secret })
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.output).toContain('it was planned without the values of: NO_SECRET.')
  })

  test('a secret for a new object only reads nothing', async () => {
    const path = file('a.yaml', document('{ create: !Env NO_SECRET }'))
    const out = join(freshFolder(), 'plans.json')
    const planned = await there.gatewright(['plan', '--out', out, path])
    expect(planned).toMatchObject({ code: 0 })
    expect(planned.output).not.toContain('not compared')
    expect(await there.gatewright(['apply', '--plan-file', out, path])).toMatchObject({ code: 0 })
    const { text } = await there.on.admin.get(`/providers/all/?search=${name}`)
    expect(text).not.toContain('NO_SECRET')
  })

  test('in submissions, in several files', async () => {
    const provider_model = 'service_providers_oauth2.oauth2provider'
    const body = (client_secret: object) => ({
      ...{ app: { name, slug: name }, provider_model },
      provider: { name, authorization_flow: flow, client_secret },
    })
    const submission = file('a.json', JSON.stringify(body({ env: 'NO_SECRET' })))
    const other = file(
      'b.yaml',
      `version: 1\nentries:\n  - { model: service_core.group, identifiers: { name: ${name} } }\n`,
    )
    const planned = await there.gatewright(['plan', submission, other])
    expect(planned.code).toBe(2)
    expect(planned.output.split(line())).toHaveLength(2)
    const created = file('c.json', JSON.stringify(body({ create: { env: 'NO_SECRET' } } as object)))
    expect(await there.gatewright(['apply', created, other])).toMatchObject({ code: 0 })
  })
})

test.each(['!Env NO_SECRET', '{ create: !Env NO_SECRET }'])(
  '%s of a new object is refused at its place',
  async (form) => {
    const path = file('a.yaml', document(form))
    const planned = await there.gatewright(['plan', path])
    expect(planned).toMatchObject({ code: 1 })
    const place = `${path}:7:7 entries.0.client_secret: NO_SECRET is not set, and there is no value that could stay.`
    expect(planned.output).toContain(place)
    const { output } = await there.gatewright(['apply', path])
    expect(output).toContain(form === '!Env NO_SECRET' ? missing(path, '7:22') : place)
    expect(await there.on.db.provider.count({ where: { name } })).toBe(0)
  },
)

test.each([
  ['a field that is no secret', document('!Env NO_SECRET', '      client_id: !Env NO_SECRET'), '8:18'],
  ['a condition', document('!Env NO_SECRET', '    conditions: [!Env NO_SECRET]'), '8:18'],
])('in %s it is an error of each command', async (_, text, at) => {
  await stand()
  const path = file('a.yaml', text)
  for (const command of ['validate', 'plan', 'diff', 'apply']) {
    const { code, output } = await there.gatewright([command, path])
    expect(code).toBe(1)
    expect(output).toContain(missing(path, at))
    expect(output.includes(missing(path, '7:22'))).toBe(command === 'apply')
  }
})

test('a value of the context that stands elsewhere, too, is an error', async () => {
  const path = file(
    'a.yaml',
    `context: { a: !Env NO_SECRET }\n${document('!Context a', '      client_id: !Context a')}`,
  )
  const { code, output } = await there.gatewright(['plan', path])
  expect(code).toBe(1)
  expect(output).toContain(missing(path, '1:15'))
})

test('an export without secrets names no variable, and adopted, it is unchanged', async () => {
  await stand()
  const directory = freshFolder()
  expect(await there.gatewright(['export', '--without-secrets', '--out', `${directory}/`])).toMatchObject({ code: 0 })
  expect((await there.gatewright(['export', '--without-secrets'])).output).not.toMatch(/GW_|!Env|client_secret/)
  expect(await there.gatewright(['plan', directory])).toMatchObject({ code: 0 })
})
