import { describe, expect, test } from 'vitest'
import { documentLimits, Find, KeyOf } from '../../src/document/document.ts'
import { parse, print } from '../../src/document/yaml.ts'
import { Problem } from '../../src/errors.ts'
import { costOf } from '../support/cpu-time.ts'
import { parseSent } from '../support/parse-sent.ts'

/** Tags that need no database, forms of a document, and how much a document may become. */

const context = `context:
  colour: blue
  no: false
  ports: [80, 443]
  hosts: { a: { zone: x }, b: { zone: y } }
  chained: !Format ["%s!", !Context colour]
  found: !Find [service_flows.flow, [slug, x]]
  self: [!Context self]
  one: !Context two
  two: !Context one
`
const sent = (value: string) =>
  parseSent(`version: 1\nentries:\n- model: m\n  identifiers: { name: x }\n  attrs:\n    a: ${value}\n${context}`)
const valueFrom = (value: string) => sent(value).entries[0]?.attrs.a
const find = new Find('service_flows.flow', { slug: 'x' })

test.each([
  ['!Context colour', 'blue'],
  ['!Context [colour, red]', 'blue'],
  ['!Context [size, 7]', 7],
  ['!Context size and more', 'and more'],
  ['!Context [size, !Context colour]', 'blue'],
  ['!Context hosts', { a: { zone: 'x' }, b: { zone: 'y' } }],
  ['!Context chained', 'blue!'],
  ['!Context found', find],
  ['!Format ["%s-%s, 100%%", !Context colour, 3]', 'blue-3, 100%'],
  ['!Format [!Context chained]', 'blue!'],
  ['!If [!Context no, a, b]', 'b'],
  ['!If [!Context ports, [!Context colour], b]', ['blue']],
  ['!If [!Context colour]', true],
  ['!If [[]]', false],
  ['!If [{}]', false],
  ['!If [null, a, b]', 'b'],
  ['!If off', false],
  ['!If [false, !Context size, b]', 'b'],
  ['!Condition [AND, true, x, 1]', true],
  ['!Condition [and, true, !Context no]', false],
  ['!Condition [NAND, true, true]', false],
  ['!Condition [OR, "", !Context no, 1]', true],
  ['!Condition [NOR, 0, null]', true],
  ['!Condition [XOR, true, true, true]', true],
  ['!Condition [XOR, true, true]', false],
  ['!Condition [XNOR, true, true]', true],
  ['!Condition [XNOR, false, true]', false],
  ['!Enumerate [!Context ports, SEQ, !Value 0]', [80, 443]],
  ['!Enumerate [!Context ports, SEQ, !Format ["%s:%s", !Index 0, !Value 0]]', ['0:80', '1:443']],
  ['!Enumerate [!Context ports, MAP, [!Format ["p%s", !Index 0], !Value 0]]', { p0: 80, p1: 443 }],
  ['!Enumerate [!Context hosts, MAP, [!Index 0, !AtIndex [!Value 0, zone]]]', { a: 'x', b: 'y' }],
  ['!Enumerate [[a, b], MAP, { x: [!Value 0], y: { of: !Value 0 } }]', { x: ['a', 'b'], y: { of: 'b' } }],
  [
    '!Enumerate [[[1, 2], [3]], SEQ, !Enumerate [!Value 1, SEQ, [!Index 1, !Value 0]]]',
    [
      [
        [0, 1],
        [0, 2],
      ],
      [[1, 3]],
    ],
  ],
  ['!Enumerate [[], SEQ, !Value 0]', []],
  ['!AtIndex [!Context ports, 1]', 443],
  ['!AtIndex [!Context ports, -1]', 443],
  ['!AtIndex [!Context ports, "0"]', 80],
  ['!AtIndex [!Context ports, 2, none]', 'none'],
  ['!AtIndex [!Context hosts, b]', { zone: 'y' }],
  ['!AtIndex [!Context hosts, toString, none]', 'none'],
  ['!AtIndex [!Context hosts, c, !Context colour]', 'blue'],
  ['!Find [service_flows.flow, [slug, x]]', find],
  ['!Find [service_flows.flow, { slug: x }]', find],
  ['!Find [!Format ["%s.flow", service_flows], [!Format ["sl%s", ug], !Format ["%s", x]]]', find],
  ['!Find [m, [a, 1], [b, !Context colour]]', new Find('m', { a: 1, b: 'blue' })],
  ['!If [!Context colour, !KeyOf x, !Find [m, [a, 1]]]', new KeyOf('x')],
  ['{ constructor: !Context colour, toString: !Context colour }', { constructor: 'blue', toString: 'blue' }],
])('%s is %j', (text, value) => {
  expect(valueFrom(text)).toEqual(value)
})

test.each([
  ['!Context size', '!Context: there is no size in the context of the document, and no default (line 6, column 8)'],
  ['[a, !Context [size]]', '(line 6, column 12)'],
  ['!Context self', '!Context: the value of self in the context refers to itself'],
  ['!Context one', '!Context: the value of one in the context refers to itself'],
  ['!Context toString', 'there is no toString'],
  ['!Context [a, b, c]', '!Context: takes a name'],
  ['!Format [!Context ports]', '!Format: takes a text'],
  ['!Format ["%s"]', '!Format: its value 1 is missing'],
  ['!Format ["%d", 1]', '!Format: "%d" is unknown'],
  ['!Format ["%s", [1]]', '!Format: its value 1 is missing, or is no text'],
  ['!Format ["", 1]', '!Format: has 1 values for 0 %s'],
  ['!If [true, a]', '!If: takes a condition, or a list of three'],
  ['!If []', '!If: takes a condition'],
  ['!Condition [true, false]', '!Condition: takes AND, NAND, OR, NOR, XOR, XNOR'],
  ['!Condition [AND]', '!Condition: takes AND'],
  ['!Condition [toString, true]', '!Condition: takes AND'],
  ['!Enumerate [a, SEQ, 1]', '!Enumerate: takes a list or mapping'],
  ['!Enumerate [[1], SET, 1]', '!Enumerate: takes a list or mapping, SEQ or MAP'],
  ['!Enumerate [[1], SEQ]', '!Enumerate: takes'],
  ['!Enumerate [[1], MAP, x]', '!Enumerate: as a MAP'],
  ['!Enumerate [!Value 0, SEQ, x]', '!Value: stands in the list of its own !Enumerate: !Value 1'],
  ['!Enumerate [!If [!KeyOf x, [1], [2]], SEQ, 1]', '!Enumerate: its list may not depend'],
  ['!Value 0', '!Value: stands in 0 !Enumerate'],
  ['!Enumerate [[1], SEQ, !Index 1]', '!Index: stands in 1 !Enumerate: there is no depth 1'],
  ['!Enumerate [[1], SEQ, !Index x]', '!Index: takes a depth'],
  ['!AtIndex [[1], 1]', '!AtIndex: 1 is not there, and there is no default'],
  ['!AtIndex [[1], a]', '!AtIndex: "a" is no index'],
  ['!AtIndex [text, 1]', '!AtIndex: its first item is neither'],
  ['!AtIndex [[1]]', '!AtIndex: takes a list or mapping'],
  ['!Find [m, [a]]', '!Find: takes a model and fields'],
  ['!Find [m, [a, 1], [a, 2]]', '!Find: names the field a twice'],
  ['!Find [[m], [a, 1]]', '!Find: takes a model'],
  ['!If {a: 1}', 'unknown mapping tag. !If takes a text or a list'],
])('%s is an error', (text, why) => {
  expect(() => valueFrom(text)).toThrow(
    expect.objectContaining({ fields: { blueprint: [expect.stringContaining(why)] } }),
  )
})

test('what depends on the database is kept, and printed without secrets of conditions', async () => {
  const there = sent(
    '[!Format ["%s-%s", !Context colour, !KeyOf x], !If [!Find [m, [a, !KeyOf x]], !Context ports, 2], !Condition [AND, !KeyOf x, s3cret]]',
  )
  expect(await parse(print(there))).toStrictEqual(there)
  expect(print(there)).not.toMatch(/Context|s3cret/)
})

/** `entries.0.id: This field is required.` */
function errorsIn(text: string): string[] {
  try {
    parseSent(text)
  } catch (error) {
    if (error instanceof Problem)
      return (error.errors ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`)
    throw error
  }
  return []
}

describe('forms of a document', () => {
  const entry = (more = '') => `{ model: m, identifiers: { name: x }${more} }`
  test.each([
    ['no metadata', `version: 1\nentries: [${entry()}]`],
    [
      'metadata without a name',
      `version: 1\nmetadata: { labels: { a: "true", b: 1, c: false } }\nentries: [${entry()}]`,
    ],
    ['lists of entries by name', `version: 1\nentries: { first: [${entry()}], second: [${entry()}] }`],
    ['no attrs', `version: 1\nentries: [${entry(', attrs: null, permissions: [], conditions: []')}]`],
    [
      'comments, a directive and three dashes',
      `# yaml-language-server: $schema=x\n%YAML 1.1\n---\nversion: 1\nentries: [${entry()}]`,
    ],
    ['a byte order mark and CRLF', `\ufeff---\r\nversion: 1\r\nentries:\r\n- ${entry()}\r\n`],
    ['anchors and aliases', `version: 1\nentries: [&a ${entry()}, *a]`],
    ['a merge key', `version: 1\nentries: [&a ${entry()}, { <<: *a, id: b }]`],
    ['a state of a tag', `version: 1\nentries: [${entry(', state: !If [true, created, absent]')}]`],
    [
      'entries of a tag',
      `version: 1\nentries: !Enumerate [[a, b], SEQ, { model: m, identifiers: { name: !Value 0 } }]`,
    ],
  ])('%s', async (name, text) => {
    const there = parseSent(text)
    expect(there.metadata.name).toBe(name === 'entries of a tag' ? 'm a' : 'm x')
    expect(there.entries.map(({ model }) => model)).toEqual(there.entries.map(() => 'm'))
    expect(await parse(print(there))).toStrictEqual(there)
    expect(print(there)).not.toMatch(/s3cret|[&*]|permissions|conditions|context/)
  })

  test('of true conditions it is kept that there are some, without their values', async () => {
    const there = parseSent(
      `version: 1\nentries: [${entry(', conditions: [true, !Context c]')}]\ncontext: { c: s3cret }`,
    )
    expect(there.entries[0]?.conditions).toEqual([true])
    expect(await parse(print(there))).toStrictEqual(there)
    expect(print(there)).not.toMatch(/s3cret|context/)
  })

  test('false conditions are kept, without their values', () => {
    const { entries } = parseSent(`version: 1\nentries: [${entry(', conditions: [s3cret, false, !KeyOf x]')}]`)
    expect(entries[0]?.conditions).toEqual([false])
  })

  test.each([
    [
      'permissions',
      `version: 1\nentries: [${entry(', permissions: [{ permission: view }]')}]`,
      'Permissions are given by roles',
    ],
    [
      'too many labels',
      `version: 1\nmetadata: { labels: { ${Array.from({ length: 51 }, (_, i) => `a${i}: 1`).join(', ')} } }\nentries: [${entry()}]`,
      'at most 50',
    ],
    ['a label of a list', `version: 1\nmetadata: { labels: { a: [] } }\nentries: [${entry()}]`, 'metadata.labels.a'],
    ['a context that is no mapping', `version: 1\ncontext: [1]\nentries: [${entry()}]`, 'context'],
    ['text for conditions', `version: 1\nentries: [${entry(', conditions: yes')}]`, 'conditions'],
  ])('%s: refused', (_, text, why) => {
    expect(errorsIn(text)).toEqual([expect.stringContaining(why)])
  })

  test('words that are booleans in YAML 1.1 are texts', () => {
    expect(valueFrom('[yes, no, on, off, 012, 1_000]')).toEqual(['yes', 'no', 'on', 'off', 12, '1_000'])
  })

  test('an alias may nest as deep as what is written out', async () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    const by = (alias: string, depth: number) => `[&a ${nested(depth)}, ${'['.repeat(10)}${alias}${']'.repeat(10)}]`
    const deepest = documentLimits.depth - 15
    expect((await parse(print(sent(by('*a', deepest - 1))))).entries).toHaveLength(1)
    expect(() => sent(by('*a', deepest))).toThrow(
      expect.objectContaining({ fields: { blueprint: [expect.stringContaining('nested deeper')] } }),
    )
  })
})

test.each([
  ['!KeyOf x', 1],
  ['!Find [m, {a: 1}]', 5],
  ['!Find [m, [a, 1]]', 5],
])('a document full of %s may have as many nodes as one without', (tag, nodes) => {
  const [few, many] = [0.98, 1.02].map((part) => Math.floor((documentLimits.nodes / nodes) * part))
  expect(sent(`[${Array(few).fill(tag).join(',')}]`).entries).toHaveLength(1)
  expect(() => sent(`[${Array(many).fill(tag).join(',')}]`)).toThrow(
    expect.objectContaining({ fields: { blueprint: [expect.stringMatching(/more than 600000 nodes/)] } }),
  )
})

test('a document without aliases may nest as deep as the parser lets it', () => {
  const refusals = Array.from({ length: 20 }, (_, more) => {
    try {
      const depth = documentLimits.depth - 15 + more
      return void sent(`${'['.repeat(depth)}!If [true, { a: 1 }, 1]${']'.repeat(depth)}`)
    } catch (error) {
      return error instanceof Problem ? String(error.fields?.blueprint) : error
    }
  }).filter((refusal) => refusal !== undefined)
  expect(refusals.length).toBeGreaterThan(0)
  expect(refusals.filter((refusal) => !/deeper than/.test(String(refusal)))).toEqual([])
})

const list = (length: number) => `[${Array.from({ length }, () => 1).join(',')}]`
const doubled = Array.from({ length: 40 }, (_, i) => `  c${i + 1}: !Format ["%s%s", !Context c${i}, !Context c${i}]`)
const hostile: Record<string, [text: string, why: RegExp]> = {
  'an !Enumerate in an !Enumerate in an !Enumerate': [
    `a: &a ${list(500)}\nb: !Enumerate [*a, SEQ, !Enumerate [*a, SEQ, !Enumerate [*a, SEQ, 1]]]`,
    /steps/,
  ],
  'values that hold lists': [
    `a: &a [${list(1000)}]\nb: !Enumerate [${list(2000)}, SEQ, !AtIndex [*a, 0]]`,
    /nodes, written out|steps/,
  ],
  'a list that grows': [`b: !Enumerate [${list(3000)}, MAP, { a: ${list(50)} }]`, /steps/],
  'texts that double': [`entries: !Context c40\ncontext:\n  c0: xxxxxxxx\n${doubled.join('\n')}`, /steps|letters/],
  'a long text, formatted often': [
    `entries: !Enumerate [${list(1000)}, SEQ, !Format ["%s", !Context c]]\ncontext: { c: "${'x'.repeat(1_000_000)}" }`,
    /letters/,
  ],
  'a chain in the context': [
    `entries: !Context c500\ncontext:\n  c0: 1\n${Array.from({ length: 500 }, (_, i) => `  c${i + 1}: [!Context c${i}]`).join('\n')}`,
    /deeper/,
  ],
}

describe('a small document that would become a large one is refused at little cost', () => {
  test.each(Object.entries(hostile))('%s', (_, [text, why]) => {
    const refusal = expect.objectContaining({ fields: { blueprint: [expect.stringMatching(why)] } })
    expect(costOf(() => expect(() => parseSent(text)).toThrow(refusal), { enough: 15 })).toBeLessThan(15)
  })
})
