import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, inject, test } from 'vitest'
import { type Blueprint, documentLimits, type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { parse, print } from '../../src/document/yaml.ts'
import { Problem } from '../../src/errors.ts'
import { costOf } from '../support/cpu-time.ts'
import { parseSent } from '../support/parse-sent.ts'

/** Texts that some YAML readers parse as another type. */
const traps = [
  ...[
    '!KeyOf x',
    '!Find [a, {}]',
    '!!str x',
    '!',
    'no',
    'yes',
    'on',
    'off',
    'y',
    'null',
    '~',
    'Null',
    'true',
    'TRUE',
    '',
  ],
  ...[
    '2020-01-01',
    '2020-01-01T00:00:00Z',
    '12:30:45',
    '0x1F',
    '0o17',
    '017',
    '1_000',
    '1e3',
    '.5',
    '+1',
    '-0',
    '.inf',
    '-.INF',
    '.nan',
  ],
  ...[
    '<<',
    '*a',
    '&a',
    '- a',
    '? a',
    ': a',
    'a: b',
    'a #b',
    '#a',
    '@a',
    '`a',
    '%YAML 1.2',
    '---',
    '...',
    '--- a',
    '|',
    '>',
    '>-',
    '[',
    '{',
    ']',
    '}',
    ',',
  ],
  ...[
    ' a',
    'a ',
    '  a\n b',
    '\na',
    'a\n',
    'a\n\n',
    '\n',
    '\n\n',
    ' \n ',
    'a\r\nb',
    'a\rb',
    '\ta',
    'a\tb',
    '\t',
    "'",
    '"',
    "it's",
    '\\n',
    '\\',
  ],
  ...[
    '\u0085',
    '\u2028',
    '\u2029',
    '\ufeff',
    '\ufeffa',
    'a\ufeff',
    '\u0007',
    '\u007f',
    '\u009f',
    '\ufffe',
    'é',
    '漢字',
    '😀',
    '\u{10ffff}',
    'e\u0301',
  ],
  ...[
    `${'word '.repeat(60)}end`,
    `${'word '.repeat(30)}\n  ${'word '.repeat(30)}`,
    ` ${'x'.repeat(300)}`,
    `${'a b\n'.repeat(50)}`,
  ],
]

const text = fc.oneof(
  fc.constantFrom(...traps),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({
    unit: fc.constantFrom(' ', '\n', 'a', ':', '#', '-', '"', "'", '\t', '\\', '\u0085', '\ufeff'),
    maxLength: 30,
  }),
  fc.tuple(fc.constantFrom(...traps), fc.constantFrom(...traps)).map(([a, b]) => a + b),
)
const name = fc
  .oneof(text, fc.constantFrom('constructor', 'toString', 'hasOwnProperty', 'length', '0', '-1'))
  .filter((key) => key !== '__proto__')
const number = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    1,
    -1,
    2 ** 31,
    2 ** 53 - 1,
    2 ** 53,
    -(2 ** 53),
    1e21,
    1e300,
    Number.MAX_VALUE,
    Number.MIN_VALUE,
    0.1,
    1e-7,
  ),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    text,
    number,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(name, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
}))
const id = text.filter((one) => one !== '' && one.length <= 255)
/** A name of a document, an entry or a field: the run's row stores it. */
const title = id.filter((one) => one.trim() !== '' && !one.includes('\0') && one.isWellFormed())
const reference = fc.oneof(
  id.map((one) => new KeyOf(one)),
  fc
    .tuple(text, fc.dictionary(name, value, { maxKeys: 3, noNullPrototype: true }))
    .map(([model, identifiers]) => new Find(model, identifiers)),
)
const dictionary = fc.dictionary(name, fc.oneof({ weight: 4, arbitrary: value }, { weight: 1, arbitrary: reference }), {
  maxKeys: 6,
  noNullPrototype: true,
})
const entry = fc.record(
  {
    model: text,
    id: title,
    state: fc.constantFrom('present', 'created', 'must_created', 'absent'),
    identifiers: dictionary,
    attrs: dictionary,
  },
  { requiredKeys: ['model', 'state', 'identifiers', 'attrs'], noNullPrototype: true },
)
const blueprints: fc.Arbitrary<Blueprint> = fc.record(
  {
    version: fc.constant(1 as const),
    metadata: fc.record({ name: title }, { noNullPrototype: true }),
    entries: fc.array(entry, { minLength: 1, maxLength: 4 }),
  },
  { noNullPrototype: true },
)

const document = (attrs: Record<string, unknown>): Blueprint => ({
  version: 1,
  metadata: { name: 'a' },
  entries: [{ model: 'm', state: 'present', identifiers: {}, attrs }],
})

describe('a printed document is parsed as an equal document', () => {
  test.each(traps)('the text %j', async (trap) => {
    const there = document({ plain: trap, nested: { list: [trap, [trap]], [trap]: trap } })
    expect(await parse(print(there))).toStrictEqual(there)
  })

  test.each([
    ['random documents', 1, 1_000],
    ['random documents of 201 entries, each of which is printed on a line', 201, 40],
  ])('%s', async (_, least, numRuns) => {
    const widened = ({ entries, ...head }: Blueprint) => {
      const length = Math.max(least, entries.length)
      return { ...head, entries: Array.from({ length }, (_, index) => entries[index % entries.length] as Entry) }
    }
    await fc.assert(
      fc.asyncProperty(blueprints.map(widened), async (there) => {
        // Not `toStrictEqual`, which takes a field named constructor as the object's class.
        expect(isDeepStrictEqual(await parse(print(there)), there)).toBe(true)
      }),
      { numRuns: numRuns * inject('rounds') },
    )
  })
})

const entryWith = (attrs: string) =>
  `version: 1\nmetadata: {name: a}\nentries:\n- model: m\n  identifiers: {}\n  attrs: ${attrs}\n`
const laughs = Array.from(
  { length: 30 },
  (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}, *a${i}, *a${i}]`,
).join('\n')

const laughsBy = (write: (before: number) => string) =>
  `a0: &a0 {a: 1}\n${Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} ${write(i)}`).join('\n')}`

const refused: Record<string, [text: string, why: RegExp]> = {
  'an alias of nothing': [entryWith('{a: *x}'), /Line 6 .*unidentified alias/],
  'an alias of itself': [entryWith('{a: &x [*x]}'), /nested deeper than 40, written out/],
  'a billion laughs': [`a0: &a0 lol\n${laughs}`, /more than 600000 nodes, written out/],
  'a billion laughs in a mapping': [laughsBy((n) => `{<<: *a${n}, b${n}: [*a${n}, *a${n}]}`), /nodes, written out/],
  'long texts by aliases': [
    entryWith(`{a: &a "${'x'.repeat(1_000_000)}", b: [*a, *a, *a, *a, *a, *a, *a, *a, *a]}`),
    /longer than 8388608 bytes, written out/,
  ],
  'merge keys of merge keys': [
    `a0: &a0 {${Array.from({ length: 800 }, (_, i) => `k${i}: 1`).join(', ')}}\n${Array.from({ length: 100 }, (_, i) => `a${i + 1}: &a${i + 1} {<<: *a${i}}`).join('\n')}`,
    /maxTotalMergeKeys/,
  ],
  'an unknown tag': [entryWith('{a: !Secret HOME}'), /Line 6 .*unknown scalar tag/],
  'a variable': [entryWith('{a: !Env HOME}'), /!Env: is resolved .* with gatewright apply \(line 6, column 14\)/],
  'a file': [entryWith('{a: [!File /etc/passwd]}'), /!File: is resolved .*line 6, column 15/],
  'a JavaScript tag': [entryWith("{a: !!js/function 'x'}"), /Line 6 .*unknown scalar tag/],
  'a binary tag': [entryWith('{a: !!binary aGk=}'), /Line 6 .*unknown scalar tag/],
  'a timestamp tag': [entryWith('{a: !!timestamp 2020-01-01}'), /Line 6 .*unknown scalar tag/],
  'a KeyOf of nothing': [entryWith("{a: !KeyOf ''}"), /Line 6 .*cannot resolve a node with explicit tag/],
  'a Find of nothing': [entryWith('{a: !Find []}'), /!Find: takes a model and fields.*line 6, column 14/],
  'a Find of a text': [entryWith('{a: !Find slug}'), /Find/],
  'a duplicate key': [entryWith('{a: 1, a: 2}'), /Line 6 .*duplicated mapping key/],
  'a document that ends early': [entryWith('{a: [1'), /Line 7 .*deficient indentation/],
  'a tab for indentation': ['version: 1\n\tmetadata: {}', /Line 2 .*tab characters/],
  'two documents': [`${entryWith('{}')}---\n${entryWith('{}')}`, /2 documents/],
  'no document': ['', /is empty/],
  'a list': ['- 1', /Must be an object/],
  'a text': ['hello', /Must be an object/],
  'another version': [entryWith('{}').replace('version: 1', 'version: 2'), /version/],
  'no entries': ['version: 1\nmetadata: {name: a}\nentries: []\n', /entries/],
  'a field that a blueprint does not have': [`${entryWith('{}')}contxt: {}\n`, /contxt/],
  'an unknown state': [entryWith('{}').replace('identifiers', 'state: gone\n  identifiers'), /state/],
  'flow sequences 50 000 deep': [entryWith(`{a: ${'['.repeat(50_000)}${']'.repeat(50_000)}}`), /deeper than 40/],
  'flow mappings 50 000 deep': [entryWith(`${'{a: '.repeat(50_000)}1${'}'.repeat(50_000)}`), /deeper than 40/],
  'block sequences 50 000 deep': [`${'- '.repeat(50_000)}a`, /deeper than 40/],
  'more than 8 MiB': [entryWith(`{a: '${'x'.repeat(documentLimits.bytes)}'}`), /longer than 8388608 bytes/],
  NUL: [entryWith('{a: "\0"}'), /Line 6 .*null byte/],
  'an id with NUL': [entryWith('{}').replace('identifiers', 'id: "a\\0"\n  identifiers'), /entries.0.id/],
}

function refusal(there: string): unknown {
  try {
    return `read as ${JSON.stringify(parseSent(there))}`
  } catch (error) {
    return error
  }
}

describe('a document that could expand to more than its text is refused', () => {
  test.each(Object.entries(refused))('%s', (_, [there, why]) => {
    const error = refusal(there)
    if (!(error instanceof Problem)) throw new Error(`not refused: ${error}`)
    const { code, errors = [] } = error
    expect(code).toBe('invalid')
    expect(errors.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n')).toMatch(why)
    expect(costOf(() => refusal(there), { rounds: 1 })).toBeLessThan(15)
  })

  test('a name of an inherited property is a field like any other', async () => {
    const there = await parse(entryWith('{constructor: 1, toString: {valueOf: 2}}'))
    expect(there.entries[0]?.attrs).toStrictEqual({ constructor: 1, toString: { valueOf: 2 } })
    expect(parseSent(entryWith('{constructor: 1, prototype: {valueOf: 2}}')).entries[0]?.attrs).toStrictEqual({
      constructor: 1,
      prototype: { valueOf: 2 },
    })
    await parse(entryWith('{__proto__: {polluted: true}}'))
    expect(Object.prototype).not.toHaveProperty('polluted')
  })

  test.each([
    ['{__proto__: {polluted: true}}', true],
    ['{a: [{b: {"__proto__": 1}}]}', true],
    ['{a: {"\\u005f_proto__": 1}}', true],
    ["{'__proto__': !Context x}", true],
    ['{a: {? __proto__ : 1}}', true],
    ['{a: &name __proto__, b: {*name : 1}}', false],
    ['{a: &more {__proto__: 1}, <<: *more}', true],
    ['{a: !Enumerate [[1], MAP, [__proto__, 1]]}', false],
    ['{a: !Enumerate [[1], MAP, [!Format ["__%s__", proto], 1]]}', false],
    ['{a: !If [true, {__proto__: 1}, b]}', true],
    ['{a: !Find [service_core.group, {__proto__: 1}]}', true],
    ['{a: !KeyOf x, b: !If [!KeyOf x, !Enumerate [[1], MAP, [__proto__, 1]], 2]}', false],
  ])('the name __proto__ is refused, in the text and made by tags: %s', (attrs, isInText) => {
    const sent = entryWith(attrs)
    const place = isInText ? { line: 6, column: 10 + attrs.search(/["']?(?:_|\\u005f)_proto__/) } : {}
    expect(() => parseSent(sent)).toThrow(
      expect.objectContaining({
        code: 'invalid',
        errors: [
          expect.objectContaining({
            code: 'unknown_field',
            message: expect.stringContaining('__proto__: no field may have this name'),
            place: { pointer: [], ...place },
          }),
        ],
      }),
    )
    expect(Object.prototype).not.toHaveProperty('polluted')
  })
})
