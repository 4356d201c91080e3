import { describe, expect, test } from 'vitest'
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
  expect(skipped).toEqual([{ name: '1.yaml b.conf', why: expect.stringContaining('no blueprint'), isWrong: false }])
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
