import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { restricting } from '../../src/cli/import/draft.ts'
import { importFiles } from '../../src/cli/importing.ts'
import { loadRegistry } from '../../src/models/registry.ts'

/** What `gatewright import` finds in files, and that one part that does not fit holds up none of the others. */

const registry = await loadRegistry()
const imported = (...texts: string[]) =>
  importFiles(
    texts.map((text, index) => ({ name: `${index}.yaml`, text })),
    new Map(),
    registry,
  )
const group = (name: string) =>
  `version: 1\nentries: [{ model: theirs_core.group, id: g, identifiers: { name: ${name} } }]\n`
const indented = (text: string) => text.replaceAll(/^(?=.)/gm, '    ')

test('documents of a file, of manifests and of lists of them are read, and printed as one', async () => {
  const { judgements, skipped, document } = await imported(
    `---\n${group('first')}---\n# nothing\n---\n${group('second')}`,
    `apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: |\n${indented(group('third'))}  b.conf: |\n    x = 1\n`,
    `apiVersion: v1
kind: List
items:
  - { apiVersion: v1, kind: Secret, data: { c.yaml: ${Buffer.from(group('fourth')).toString('base64')} } }
  - { apiVersion: v1, kind: Secret, stringData: { d.yaml: ${JSON.stringify(group('fifth'))} } }
`,
  )
  expect(judgements.map(({ file, name, outcome }) => [file, name, outcome])).toEqual([
    ['0.yaml document 1', 'first', 'applies'],
    ['0.yaml document 2', 'second', 'applies'],
    ['1.yaml a.yaml', 'third', 'applies'],
    ['2.yaml item 1 c.yaml', 'fourth', 'applies'],
    ['2.yaml item 2 d.yaml', 'fifth', 'applies'],
  ])
  expect(skipped).toEqual([
    { name: '1.yaml b.conf', why: 'Its name does not end in .yaml, .yml or .json.', isWrong: false },
  ])
  expect([...(document ?? '').matchAll(/name: (first|second|third|fourth|fifth)$/gm)]).toHaveLength(5)
})

test('what is empty, no blueprint or unreadable is skipped, and the others are read', async () => {
  const { judgements, skipped } = await imported('', '# a comment\n', 'a: 1', 'version: [', '---\n', group('left'))
  expect(judgements).toMatchObject([{ name: 'left', outcome: 'applies' }])
  expect(skipped.map(({ name, isWrong }) => [name, isWrong])).toEqual([
    ...[0, 1, 2].map((index) => [`${index}.yaml`, false]),
    ['3.yaml', true],
    ['4.yaml', false],
  ])
  expect(await imported('# a comment\n')).toMatchObject({
    judgements: [],
    document: null,
    skipped: [{ why: 'It is empty.' }],
  })
})

test('data of a manifest that is no YAML or JSON by its name is ignored; what is, is read', async () => {
  const data = { 'a.sh': 'x: [', 'b.YML': group('yml'), 'c.json': JSON.stringify({ entries: [] }), 'd.yaml': 'x: [' }
  const { judgements, skipped } = await imported(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', data }))
  expect(judgements).toMatchObject([{ name: 'yml', outcome: 'applies' }])
  expect(skipped.map(({ name, isWrong }) => [name, isWrong])).toEqual([
    ['0.yaml a.sh', false],
    ['0.yaml c.json', false],
    ['0.yaml d.yaml', true],
  ])
})

test('a document without a version is of version 1, and one of another version is none', async () => {
  const unversioned = group('x').replace('version: 1\n', '')
  expect((await imported(unversioned)).judgements).toMatchObject([{ name: 'x', outcome: 'applies' }])
  const { skipped } = await imported(`version: 2\n${unversioned}`, unversioned)
  expect(skipped).toMatchObject([{ name: '0.yaml', why: 'This is no blueprint of version 1 with entries.' }])
})

test('tags in id and state stay for apply, and id: null is none', async () => {
  const { judgements, document } = await imported(`version: 1
entries:
  - { model: theirs_core.user, id: !Env NAME, state: !If [!Env GONE, absent, present], identifiers: { username: !Env NAME } }
  - { model: theirs_core.group, id: null, identifiers: { name: x } }
  - { model: theirs_core.group, id: 7, identifiers: { name: y } }
  - { model: theirs_core.group, identifiers: { name: z }, attrs: { parent: !KeyOf 7 } }
`)
  expect(judgements.map(({ outcome }) => outcome)).toEqual(judgements.map(() => 'applies'))
  expect(document).toMatch(/id: !Env\n +- NAME\n +state: !If\n/)
  expect(document).toContain("id: '7'")
  expect(document).not.toContain('null')
})

test('items that cannot be said are left out, with their places, and the entry stays with what refers to it', async () => {
  const { judgements, document } = await imported(`version: 1
entries:
  - model: theirs_providers_oauth2.oauth2provider
    id: provider
    identifiers: { name: x }
    attrs:
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      redirect_uris:
        - { matching_mode: strict, url: "https://x.example.com/out", redirect_uri_type: logout }
        - { matching_mode: regex, url: "(" }
        - { matching_mode: strict, url: "https://x.example.com/cb", redirect_uri_type: authorization }
        - { matching_mode: strict, url: !Context missing }
        - { matching_mode: strict, url: "no URL", colour: blue }
  - { model: theirs_core.application, identifiers: { slug: x }, attrs: { name: X, provider: !KeyOf provider } }
  - { model: theirs_providers_oauth2.oauth2provider, identifiers: { name: lines }, attrs: {
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]],
      redirect_uris: "https://y.example.com/cb\\nno URL" } }
  - { model: theirs_providers_oauth2.oauth2provider, identifiers: { name: none }, attrs: {
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]],
      redirect_uris: [{ matching_mode: regex, url: "[" }] } }
`)
  expect(judgements.map(({ outcome }) => outcome)).toEqual(['partly', 'applies', 'partly', 'partly'])
  const [first, , lines, none] = judgements
  expect(first?.leftOut.map((each) => each.slice(0, 'redirect_uris.0'.length)).sort()).toEqual(
    [0, 1, 3, 4, 4].map((index) => `redirect_uris.${index}`),
  )
  expect(first?.ignored).toEqual([expect.stringMatching(/^redirect_uris\.2\.redirect_uri_type/)])
  expect(lines?.leftOut).toEqual([expect.stringMatching(/^redirect_uris\.1: url: /)])
  expect(none?.leftOut).toEqual([expect.stringMatching(/^redirect_uris\.0: url: /)])
  expect(document?.match(/url: .*/g)).toEqual(['url: https://x.example.com/cb', 'url: https://y.example.com/cb'])
})

test('an item that only the caller knows stays, and the others of its list are judged', async () => {
  const uri = (url: string) => `{ matching_mode: strict, url: ${url} }`
  const provider = (name: string, ...uris: string[]) => `
  - model: theirs_providers_oauth2.oauth2provider
    identifiers: { name: ${name} }
    attrs:
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      redirect_uris: [${uris.join(', ')}]`
  const { judgements, document } = await imported(
    `entries:${provider('some', uri('!Env RU'), uri('"no URL"'), uri('!Env RV'), uri('"https://a.example/"'), '{ matching_mode: regex, url: "(", colour: red }')}
${provider('unknown', uri('!Env RW'))}
  - { model: theirs_core.group, identifiers: { name: g }, attrs: { users: [!Env X, '', !If [!Env Y, !KeyOf none, u]] } }
`,
  )
  expect(judgements.map(({ outcome }) => outcome)).toEqual(['partly', 'applies', 'partly'])
  expect(judgements[0]?.leftOut.map((each) => each.slice(0, 23)).sort()).toEqual([
    'redirect_uris.1: url: M',
    'redirect_uris.4.colour:',
    'redirect_uris.4: url: M',
  ])
  expect(judgements[2]?.leftOut[0]).toMatch(/^users.1: /)
  expect(document).toMatch(/RU[\s\S]*RV[\s\S]*https:\/\/a\.example\/[\s\S]*RW/)
  expect(document).not.toMatch(/no URL|regex/)
})

describe('a value that is refused', () => {
  const judged = async (model: string, ...attrs: string[]) => {
    const { judgements, document } = await imported(
      `entries: [{ model: theirs_${model}, identifiers: { name: x }, attrs: {
        authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]], ${attrs.join(', ')} } }]`,
    )
    return { ...judgements[0], document }
  }
  const proxy = 'external_host: "https://x.example", internal_host: "http://10.0.0.1"'

  test.each([
    ['providers_oauth2.oauth2provider', 'client_id: ""', /^client_id: /],
    ['providers_rac.racprovider', 'connection_expiry: nonsense', /^connection_expiry: /],
    ['providers_proxy.proxyprovider', `${proxy}, cookie_domain: "not a domain"`, /^cookie_domain: /],
    ['providers_proxy.proxyprovider', `${proxy}, skip_path_regex: "("`, /^skip_path_regex: /],
    ['providers_ldap.ldapprovider', 'uid_start_number: [1]', /^uid_start_number: /],
  ])('of %s is left out: %s', async (model, attrs, why) => {
    const { outcome, leftOut, document } = await judged(model, attrs)
    expect([outcome, leftOut]).toEqual(['partly', [expect.stringMatching(why)]])
    expect(document).toContain('name: x')
    expect(document).not.toMatch(/client_id|nonsense|not a domain|skip_path_regex|uid_start/)
  })

  test('in one line of several is left out with the line', async () => {
    const { outcome, leftOut, document } = await judged(
      'providers_proxy.proxyprovider',
      `${proxy}, skip_path_regex: "^/public\\n^/(?!admin)\\n^/health"`,
    )
    expect([outcome, leftOut]).toEqual(['partly', [expect.stringMatching(/^skip_path_regex: \^\/\(\?!admin\): /)]])
    expect(document).toMatch(/\^\/public\n +\^\/health/)
    expect(document).not.toContain('admin')
  })

  test.each([
    ['a required field', 'providers_proxy.proxyprovider', 'external_host: nonsense', /^external_host: /],
    ['a secret', 'providers_radius.radiusprovider', 'shared_secret: ""', /^shared_secret: /],
    ['networks', 'providers_radius.radiusprovider', 'client_networks: 10.0.0.0/99', /^client_networks: /],
    ['an audience', 'providers_saml.samlprovider', 'acs_url: "https://x.example/", audience: 5', /^audience: /],
    [
      'a key that requests are verified with',
      'providers_saml.samlprovider',
      'acs_url: "https://x.example/", verification_kp: 5',
      /^verification_kp restricts/,
    ],
    [
      'the group whose members are synced',
      'providers_scim.scimprovider',
      `url: "https://x.example/", token: t, filter_group: ${randomUUID()}`,
      /^filter_group restricts/,
    ],
    ['the owners whose rows a role is for', 'rbac.role', 'owners: [""]', /^owners restricts/],
    ['whether a user may log in', 'core.user', 'username: x, is_active: perhaps', /^is_active: /],
  ])('of %s: the entry cannot be applied', async (_, model, attrs, why) => {
    const { outcome, reasons, document } = await judged(model, attrs)
    expect([outcome, reasons, document]).toEqual(['cannot', [expect.stringMatching(why)], null])
  })

  test('is kept by fields that are there', () => {
    const names = new Set(registry.models.flatMap(({ fields }) => [...fields.keys()]))
    expect([...restricting].filter((name) => !names.has(name))).toEqual([])
  })
})

describe('one thing that cannot be read', () => {
  const provider = (name: string, attrs: string) =>
    `  - { model: theirs_providers_radius.radiusprovider, id: ${name}, identifiers: { name: ${name} }, attrs: {
      authorization_flow: !Find [theirs_flows.flow, [slug, default-authentication-flow]], ${attrs} } }\n`
  const staff = '  - { model: theirs_core.group, identifiers: { name: staff } }\n'

  test.each([
    ['an unknown tag', '!Parse x', 'The tag !Parse is unknown here.'],
    ['one before a list', '!Parse [!Env X, { a: 1 }]', 'The tag !Parse is unknown here.'],
    ['one before a mapping', '!Parse { a: !KeyOf b, <<: { c: 1 } }', 'The tag !Parse is unknown here.'],
    ['a tag of another schema', '!!binary aGVsbG8=', 'The tag tag:yaml.org,2002:binary is unknown here.'],
    ['a number that is not kept', '1056712345678901234', 'Is a number that is not kept'],
    ['a decimal', '0.1234567890123456789', 'Is a number that is not kept'],
    ['one in another tag', '!If [!Env X, 1e400, 1]', 'Is a number that is not kept'],
  ])('%s: the entry that has it in a field is not applied, and all others are', async (_, value, why) => {
    const { judgements, skipped, document } = await imported(
      `version: 1\ncontext: { own: ${value} }\nentries:\n${staff}  - { model: theirs_core.group, identifiers: { name: x }, attrs: { attributes: { a: { b: ${value} } } } }\n  - { model: theirs_core.user, identifiers: { username: y }, attrs: { attributes: !Context own } }\n${provider('z', `mfa_support: false, evaluation: ${value}`)}`,
      group('other'),
    )
    expect(skipped).toEqual([])
    expect(judgements.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['staff', 'applies'],
      ['x', 'cannot'],
      ['y', 'cannot'],
      ['z', 'partly'],
      ['other', 'applies'],
    ])
    expect(judgements[1]?.reasons).toEqual([expect.stringContaining(`line 5, column`)])
    expect(judgements[1]?.reasons[0]).toContain(why)
    expect(judgements[2]?.reasons[0]).toMatch(/^line 2, column \d+: /)
    expect(judgements[3]?.leftOut).toEqual([expect.stringMatching(/^evaluation: Unknown field\./)])
    expect(document).not.toMatch(/Parse|binary|Unread|105671|e\+/)
  })

  test('an item of a list is left out, and an entry, a label and another document too', async () => {
    const { judgements, skipped, document } = await imported(
      `version: 1
metadata: { name: kept, labels: { a: !Parse x } }
owner: !Parse x
entries:
  - model: theirs_core.user
    identifiers: { username: u }
    attrs: { groups: [!Parse a, !Find [theirs_core.group, [name, staff]], 12345678901234567890] }
  - !Parse { model: theirs_core.group }
${staff}`,
      'version: 1\nentries: !Parse [x]\n',
      `version: 1\nentries:\n  first:\n${staff.replace('staff', 'more').replaceAll(/^/gm, '  ').trimEnd()}\n`,
    )
    expect(judgements.map(({ outcome }) => outcome)).toEqual(['partly', 'cannot', 'applies', 'applies'])
    expect(judgements[0]?.leftOut).toEqual([
      expect.stringMatching(/^groups\.0: line 7, column \d+: The tag !Parse is unknown here\.$/),
      expect.stringMatching(/^groups\.2: line 7, column \d+: Is a number/),
    ])
    expect(judgements[1]?.reasons[0]).toMatch(/^line 8, column 5: The tag !Parse is unknown here\.$/)
    expect(skipped).toEqual([{ name: '1.yaml', why: expect.stringMatching(/^line 2, .*!Parse/), isWrong: true }])
    expect(document).toMatch(/name: staff[\s\S]*name: more/)
  })

  test('a number in quotes stays as it is, and one that is kept', async () => {
    const { document } = await imported(
      `version: 1\nentries:\n  - { model: theirs_core.group, identifiers: { name: x }, attrs: { attributes: { a: '1056712345678901234', b: 9007199254740991, c: 1.50 } } }\n`,
    )
    expect(document).toMatch(/a: '1056712345678901234'\n +b: 9007199254740991\n +c: 1.5\n/)
  })
})

test('parents of a group: one is its parent, none is none, and of several none is chosen', async () => {
  const { judgements, document } = await imported(`version: 1
entries:
  - { model: theirs_core.group, identifiers: { pk: 7b0cf0e5-4f5c-4a4e-8a1e-0a3b8f2f0c11 }, attrs: { name: top, parents: [] } }
  - { model: theirs_core.group, id: mid, identifiers: { name: mid }, attrs: { parents: [7b0cf0e5-4f5c-4a4e-8a1e-0a3b8f2f0c11] } }
  - { model: theirs_core.group, identifiers: { name: low }, attrs: { parents: [!KeyOf mid] } }
  - { model: theirs_core.group, identifiers: { name: two }, attrs: { parents: [!KeyOf mid, !KeyOf mid] } }
`)
  expect(judgements.map(({ outcome }) => outcome)).toEqual(['applies', 'applies', 'applies', 'partly'])
  expect(judgements.at(-1)?.leftOut).toEqual(['parents: a group has one parent here, and not 2'])
  expect(document?.match(/parent: .*/g)).toEqual([
    'parent: null',
    'parent: !KeyOf group of entry 0',
    'parent: !KeyOf mid',
  ])
})
