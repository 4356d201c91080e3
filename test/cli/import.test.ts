import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { applied, compileCache, freshFolder, type Installation, installation } from '../support/kit.ts'

/** `gatewright import`: a document of another service of this API family. */

const program = fileURLToPath(new URL('../../bin/gatewright.mjs', import.meta.url))
const folder = freshFolder()

function run(text: string, ...options: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'import', '-', ...options], {
    input: text,
    env: { ...compileCache, HIDDEN_VALUE: 'do-not-print' },
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, stdout, stderr }
}

type Entry = { entry: number; outcome: string; left_out: string[]; reasons: string[] }
const judge = (text: string, ...options: string[]) => {
  const { status, stdout } = run(text, '--json', ...options)
  const { entries, document, exit } = JSON.parse(stdout) as { entries: Entry[]; document: string | null; exit: number }
  expect(exit).toBe(status)
  return { status, entries, document }
}

const entries = (...lines: string[]) => `version: 1\nentries:\n${lines.map((line) => `- ${line}\n`).join('')}`

const theirs = `# yaml-language-server: $schema=https://example.com/schema.json
version: 1
metadata:
  name: theirs
  labels: { example.com/instantiate: "false" }
context: { team: green, sizes: [1, 2] }
entries:
  - model: theirs_flows.flow
    id: flow
    identifiers: { slug: imported-flow }
    attrs: { name: Imported, title: Welcome, designation: authorization, layout: stacked, denied_action: message }
  - model: theirs_stages_password.passwordstage
    id: stage
    identifiers: { name: password }
  - model: theirs_flows.flowstagebinding
    identifiers: { target: !KeyOf flow, stage: !KeyOf stage, order: 10 }
  - model: theirs_core.group
    id: group
    identifiers: { name: !Format ["imported %s", !Context team] }
    attrs: &attrs { attributes: !Enumerate [!Context sizes, MAP, [!Format ["s%s", !Index 0], !Value 0]], num_pk: 7 }
  - model: theirs_core.group
    conditions: [!Find [theirs_core.group, [name, imported green]]]
    identifiers: { name: imported below }
    attrs: { <<: *attrs, parent: !Find [theirs_core.group, [name, imported green]] }
  - model: theirs_providers_oauth2.oauth2provider
    id: provider
    identifiers: { name: imported }
    attrs:
      authorization_flow: !KeyOf flow
      invalidation_flow: !Find [theirs_flows.flow, [slug, default-provider-invalidation]]
      property_mappings:
        - !Find [theirs_providers_oauth2.scopemapping, [scope_name, openid]]
        - !Find [theirs_mappings.propertymapping, [managed, gatewright/oauth2/scope-openid]]
      redirect_uris:
        - { matching_mode: strict, url: "https://imported.example.com/", redirect_uri_type: authorization }
  - model: theirs_core.application
    identifiers: { slug: imported }
    attrs: { name: Imported, provider: !KeyOf provider, meta_publisher: !Env [HIDDEN_VALUE, none] }
`

test('a document is judged entry by entry', () => {
  const { status, entries: judged, document } = judge(theirs)
  expect(status).toBe(1)
  expect(judged.map(({ outcome }) => outcome)).toEqual([
    ...['partly', 'cannot', 'cannot', 'applies', 'applies', 'applies', 'applies'],
  ])
  expect(judged.flatMap(({ reasons }) => reasons)).toEqual([
    'unknown model theirs_stages_password.passwordstage',
    'unknown model theirs_flows.flowstagebinding',
  ])
  expect(judged.flatMap(({ left_out }) => left_out)).toEqual([
    'layout: Unknown field.',
    'denied_action: Unknown field.',
  ])
  expect(document).toContain('!Env')
  expect(document).not.toMatch(/do-not-print|theirs_|&|stage/)
})

describe('why an entry cannot be applied', () => {
  const group = 'model: theirs_core.group, identifiers: { name: x }'
  test.each([
    [
      'an unknown model',
      ['{ model: theirs_core.brand, identifiers: { domain: x } }'],
      ['unknown model theirs_core.brand'],
    ],
    ['a model without a prefix', ['{ model: group, identifiers: { name: x } }'], ['unknown model group']],
    ['an unfit value', [`{ ${group}, attrs: { name: 7 } }`], ['name: Must be text.']],
    [
      'an unknown identifier',
      ['{ model: theirs_core.group, identifiers: { name: x, domain: y } }'],
      ['unknown field domain among the identifiers'],
    ],
    ['no identifiers', ['{ model: theirs_core.group }'], [expect.stringContaining('identifiers')]],
    ['an unknown member', [`{ ${group}, colour: blue }`], [expect.stringContaining('colour')]],
    [
      'a value that is not in the context',
      [`{ ${group}, attrs: { attributes: !Context size } }`],
      [expect.stringMatching(/^line 3, column \d+: !Context: .*size/)],
    ],
    [
      'a condition about an unknown model',
      [`{ ${group}, conditions: [!Find [theirs_core.brand, [domain, x]]] }`],
      ['refers to the unknown model theirs_core.brand'],
    ],
    [
      'a required field that refers to an unknown model',
      [
        '{ model: theirs_providers_oauth2.oauth2provider, identifiers: { name: x }, attrs: { authorization_flow: !Find [theirs_core.brand, [domain, x]] } }',
      ],
      ['authorization_flow is required, and cannot be left out'],
    ],
    [
      'an entry that cannot be applied, and one that refers to it',
      [
        '{ model: theirs_core.group, id: a, identifiers: { name: a }, attrs: { name: 7 } }',
        '{ model: theirs_core.group, id: b, identifiers: { name: b }, attrs: { parent: !KeyOf a } }',
        '{ model: theirs_core.group, identifiers: { name: c }, attrs: { attributes: { of: [!KeyOf b] } } }',
      ],
      [
        'name: Must be text.',
        'refers to the entry a, which cannot be applied',
        'refers to the entry b, which cannot be applied',
      ],
    ],
    ['no entry', ['7'], [expect.any(String)]],
  ])('%s', (_, lines, reasons) => {
    const {
      status,
      entries: judged,
      document,
    } = judge(entries(...lines, '{ model: theirs_core.group, identifiers: { name: fits } }'))
    expect(status).toBe(1)
    expect(judged.flatMap((each) => each.reasons)).toEqual(reasons)
    expect(judged.at(-1)).toMatchObject({ outcome: 'applies' })
    expect(document).toContain('fits')
  })
})

test('when all apply, the code is 0 and the output is the blueprint, with the report as comments', () => {
  const { status, stdout } = run(
    entries('{ model: theirs_core.group, identifiers: { name: !Context team } }'),
    '--context',
    'team=blue',
  )
  expect(status).toBe(0)
  expect(stdout).toBe(`# applies  entry 0: theirs_core.group blue
# of 1: 1 applies, 0 partly, 0 cannot
version: 1
entries:
  - model: service_core.group
    identifiers:
      name: blue
    attrs: {}
`)
})

test('access that is not restricted any more is said on standard error, in the document and in --json', () => {
  const bound = entries(
    '{ model: theirs_core.application, id: app, identifiers: { slug: wiki }, attrs: { name: Wiki } }',
    '{ model: theirs_policies.policybinding, identifiers: { target: !KeyOf app, group: !Find [theirs_core.group, [name, staff]] } }',
  )
  const sentence =
    'Access to the application "wiki" is not restricted any more: it was bound to the group "staff", and there are no bindings here.'
  const { status, stdout, stderr } = run(bound)
  expect([status, stderr]).toEqual([1, `WARNING: ${sentence}\n`])
  expect(stdout).toContain(`# WARNING: ${sentence}\nversion: 1\n`)
  expect(JSON.parse(run(bound, '--json').stdout)).toMatchObject({ warnings: [sentence] })
})

test('a text that is no blueprint, or too large written out, is refused', () => {
  for (const text of ['a: 1', '[1]', 'version: 1\nentries: []', 'version: 2\nentries: [1]', 'version: [']) {
    const { status, stdout, stderr } = run(text)
    expect([status, stdout], stderr).toEqual([1, ''])
  }
  const laughs = Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}]`).join('\n')
  expect(run(`a0: &a0 x\n${laughs}\n${theirs.replace(/^#.*\n/, '')}`)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('written out'),
  })
})

describe('with a service', () => {
  let on: Installation
  beforeAll(async () => {
    on = await installation()
  })

  test('what is written is applied, and a second time changes nothing', async () => {
    const out = join(folder, 'ours.yaml')
    writeFileSync(out, '')
    const { stdout } = run(theirs, '--out', out)
    expect(stdout).toContain('of 7: 4 applies, 1 partly, 2 cannot')
    expect(stdout).not.toContain('version:')
    const document = readFileSync(out, 'utf8').replace(/!Env\n.*\n.*\n/, 'by hand\n')
    const send = () =>
      on.admin.put('/api/v3/blueprints/', document, { headers: { 'content-type': 'application/yaml' } })
    await applied(send())
    const { logs } = (await send()).json as { logs: string[] }
    expect(logs.filter((line) => !line.endsWith(' unchanged'))).toEqual([])
    const application = await on.db.application.findUniqueOrThrow({ where: { slug: 'imported' } })
    const provider = await on.db.provider.findFirstOrThrow({ where: { name: 'imported' } })
    expect(application.providerPk).toBe(provider.pk)
    const group = await on.db.group.findFirstOrThrow({
      where: { name: 'imported below' },
      select: { attributes: true, parent: true },
    })
    expect(group).toMatchObject({ attributes: { s0: 1, s1: 2 }, parent: { name: 'imported green' } })
  })
})
