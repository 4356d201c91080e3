import fc from 'fast-check'
import { CORE_SCHEMA, load } from 'js-yaml'
import { describe, expect, inject, test } from 'vitest'
import { findSpots } from '../../src/document/places.ts'
import { eventsOf } from '../../src/document/short-lines.ts'
import { readWritten } from '../../src/document/yaml.ts'
import type { Problem } from '../../src/errors.ts'
import { cpuMsOf } from '../support/cpu-time.ts'

/**
 * Lines inside of brackets and quotes that are indented less than YAML 1.2 asks for. What each case means is what PyYAML
 * 6.0.3 reads from it.
 */

const read = (text: string): unknown => JSON.parse(JSON.stringify(readWritten(text)))

test.each([
  ['a closing bracket in the column of its key', 'a: [\n  x,\n  y\n]\nb: 1\n', { a: ['x', 'y'], b: 1 }],
  ['a closing brace in the column of its key', 'a: {\n  x: 1,\n}\nb: 1\n', { a: { x: 1 }, b: 1 }],
  ['in column 0 of a nested mapping', 'a:\n  b:\n    c: [\n  x\n]\n  d: 1\n', { a: { b: { c: ['x'] }, d: 1 } }],
  ['in the column of a dash', '- [\n  x\n]\n- {a: 1\n}\n', [['x'], { a: 1 }]],
  ['in the column of a key behind a dash', '- a: 1\n  b: [\n  x\n  ]\n  c: 2\n', [{ a: 1, b: ['x'], c: 2 }]],
  ['items, and a comment with brackets', 'a: [ # it\'s ]\nx, # "}\n[y\n]]\n', { a: ['x', ['y']] }],
  ['quotes in a block', "a: \"x\ny\"\nb: 'it''s\n]'\n", { a: 'x y', b: "it's ]" }],
  ['quotes in brackets, with a break that is escaped', 'a: ["x \\\ny",\n"]\n}"]\n', { a: ['x y', '] }'] }],
  ['a text of two lines, with an empty one between', 'a: [x\n\ny]\n', { a: ['x\ny'] }],
  ['a text in which a quote or bracket stands', 'a: [it\'s\n"x, y#z, b:c\n]\n', { a: ['it\'s "x', 'y#z', 'b:c'] }],
  ['behind a text in a block with brackets', 'a: see [1] {\n  "more\nb: [\n]\n', { a: 'see [1] { "more', b: [] }],
  ['behind lines that are a text', 'a: |\n  ]\n  "[\n  {\nb: [\n]\n', { a: ']\n"[\n{\n', b: [] }],
  ['behind a text with its indentation given', 'a:\n- |2-\n   [\n- [\n]\n', { a: [' [', []] }],
  ['behind a folded text', 'a: >- # [\n  x\n   {\n\n  y\nb: {\n}\n', { a: 'x\n {\n\ny', b: {} }],
  ['behind comments', '# it\'s [\na: 1 # "{\n#]\nb: [\n]\n', { a: 1, b: [] }],
  ['quoted keys, without a space behind the colon', 'a: {"b":[\n],\n"c":\n1}\n', { a: { b: [], c: 1 } }],
  ['behind an anchor, with an alias', 'a: &x [\n1\n]\nb: [ *x ,\n*x\n]\n', { a: [1], b: [[1], [1]] }],
  ['below its key', 'a:\n  [\n]\nb:\n  - \n    {\n}\n', { a: [], b: [{}] }],
  ['with other ends of lines', 'a: [\r\nx\r\n]\r\nb: "y\r\nz"\r\n', { a: ['x'], b: 'y z' }],
  ['behind the start of a document', '--- # x\na: [\n]\n', { a: [] }],
  ['keys in quotes', '"a b": [\n]\n\'c\': {\n}\n', { 'a b': [], c: {} }],
])('is read as PyYAML reads it: %s', (_, text, value) => {
  expect(read(text)).toEqual(value)
})

test('brackets alone, and the same line in a text', () => {
  expect(read('a: [\n  1\n]\nb: |\n  x\n  ]\nc:\n  d: [\n  ]\n')).toEqual({ a: [1], b: 'x\n]\n', c: { d: [] } })
})

test('a line in brackets, and the same line outside of them', () => {
  expect(read('a: {\nx: 1\n}\nb:\nx: 1\n')).toEqual({ a: { x: 1 }, b: null, x: 1 })
})

test.each([
  ['a document mark inside of brackets', 'a: [x\n---\n]\n', 'Line 2', 2],
  ['a bracket that is never closed', 'a: [x\nb: 1\n', 'Line 2', 2],
  ['an error behind a line that is too short', 'a: [\n]\nb: ["x" "y"]\n', 'Line 2', 2],
])('refused, with its place: %s', (_, text, message, line) => {
  expect(() => readWritten(text)).toThrow(
    expect.objectContaining<Partial<Problem>>({
      errors: [
        expect.objectContaining({
          message: expect.stringContaining(message),
          place: expect.objectContaining({ line }),
        }),
      ],
    }),
  )
})

/** An end of a line inside of brackets or quotes: the next line may be indented as it likes. */
const free = '\u0001'
const gap = fc.constantFrom('', ' ', '  ', free, ` # it's ] "{${free}`, `${free}${free}`)
const flowText = fc.constantFrom(
  ...['a', 'b c', "it's", '-1', '""', "''", 'x#y', 'a:b', 'null', 'a"b'],
  ...['"q ] }"', "'s '' [ {'", '"\\" ]"', `"two${free}lines"`, `two${free}lines`, `"x\\${free}y"`, `'${free}] '`],
  ...[`a${free}${free}"b`, `"# ${free}# no comment"`, `"${free}${free}"`],
)
const { flow } = fc.letrec<{ flow: string }>((tie) => ({
  flow: fc.oneof(
    { depthSize: 'small' },
    flowText,
    fc
      .array(fc.tuple(gap, tie('flow'), gap), { maxLength: 3 })
      .chain((items) => gap.map((last) => `[${items.map((item) => item.join('')).join(',')}${last}]`)),
    fc
      .array(fc.tuple(gap, fc.constantFrom('k', '"k', "'k"), fc.constantFrom(': ', `:${free}`), tie('flow'), gap), {
        maxLength: 3,
      })
      .chain((pairs) =>
        gap.map((last) => {
          const key = (sign: string, index: number) => `${sign}${index}${sign.length > 1 ? sign[0] : ''}`
          return `{${pairs.map(([before, sign, colon, value, after], index) => `${before}${key(sign, index)}${colon}${value}${after}`).join(',')}${last}}`
        }),
      ),
  ),
}))

/** Lines of a block: what stands behind a key, and the lines below it, without their indentation. */
type Block = { readonly here: string; readonly below: readonly string[] }
const line = (here: string): Block => ({ here, below: [] })
const indented = (lines: readonly string[], by = 2) => lines.map((each) => (each === '' ? '' : ' '.repeat(by) + each))
const blockText = fc
  .tuple(
    fc.constantFrom('|', '>', '|-', '>+', '| # ['),
    fc.array(fc.constantFrom(']', '"[', '{', "# '", 'x', ' }', ''), { maxLength: 3 }),
  )
  .map(([here, lines]): Block => ({ here, below: indented(['x', ...lines]) }))
const { block } = fc.letrec<{ block: Block }>((tie) => ({
  block: fc.oneof(
    { depthSize: 'small' },
    // A text without quotes ends in a block where a line is indented less.
    flow.filter((text) => /^[[{"']/.test(text) || !text.includes(free)).map(line),
    blockText,
    fc.constantFrom(line('see [1] {'), { here: 'see [', below: ['  "more ]', "  [it's"] }),
    fc.array(tie('block'), { minLength: 1, maxLength: 3 }).map((items) => ({ here: '', below: mapping(items) })),
    fc
      .array(tie('block'), { minLength: 1, maxLength: 3 })
      .chain((items) => fc.constantFrom(0, 2).map((by) => ({ here: '', below: indented(list(items), by) }))),
  ),
}))

const mapping = (values: readonly Block[]): string[] =>
  values.flatMap(({ here, below }, index) => {
    const isList = here === '' && below[0]?.startsWith('- ')
    const isText = here !== ''
    return [`key${index}: ${here}`, ...(isList || isText ? below : indented(below)), ...(isText ? [] : ["# it's ["])]
  })
const list = (values: readonly Block[]): string[] =>
  values.flatMap(({ here, below }) => (here === '' ? indentedItem(below) : [`- ${here}`, ...below]))
const indentedItem = ([first = '', ...rest]: readonly string[]) => [`- ${first}`, ...indented(rest)]

const documents = fc.array(block, { minLength: 1, maxLength: 4 }).map((values) => mapping(values).join('\n'))

/** Fills in each free end of a line. */
const spread = (text: string, spaces: (index: number) => number): string => {
  let index = -1
  return `${text.replaceAll(free, () => {
    index += 1
    return `\n${' '.repeat(spaces(index))}`
  })}\n`
}

const generated = fc
  .tuple(documents, fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 20 }))
  .map(([text, spaces]) => ({
    wide: spread(text, () => 40),
    narrow: spread(text, (index) => spaces[index % spaces.length] ?? 0),
  }))

describe('generated documents', () => {
  test('mean the same, however the lines inside of brackets and quotes are indented', () => {
    let [tried, refused] = [0, 0]
    fc.assert(
      fc.property(generated, ({ wide, narrow }) => {
        tried += 1
        const value = load(wide, { schema: CORE_SCHEMA })
        try {
          load(narrow, { schema: CORE_SCHEMA })
        } catch {
          refused += 1
        }
        expect(readWritten(narrow)).toEqual(value)
      }),
      { numRuns: 2_000 * inject('rounds') },
    )
    // Else it tries nothing that the parser does not read by itself.
    expect(refused / tried).toBeGreaterThan(0.3)
  })

  test('keep their places', () => {
    fc.assert(
      fc.property(generated, ({ wide, narrow }) => {
        const [before, after] = [wide, narrow].map((text) => eventsOf(text, () => 40))
        const plain = (text: string, events: ReturnType<typeof eventsOf> = []) =>
          events.map((event) =>
            'valueStart' in event ? text.slice(event.valueStart, event.valueEnd).replace(/\s+/g, '') : event.type,
          )
        expect(plain(narrow, after)).toEqual(plain(wide, before))
        const [place] = findSpots(`${narrow}last: x\n`, [['last']], () => undefined)
        expect(place).toMatchObject({ line: narrow.split('\n').length, column: 1 })
      }),
      { numRuns: 200 * inject('rounds') },
    )
  })
})

test('a document of many such lines costs what its size costs', () => {
  const text = (count: number) => Array.from({ length: count }, (_, index) => `k${index}: [\n  x,\n]\n`).join('')
  const [few, many] = [text(2_000), text(16_000)]
  // Each pair is measured in one go, and the calmest counts: 8 where the cost grows with the size, 64 with its square.
  const ratio = () =>
    cpuMsOf(() => readWritten(many)) /
    Math.max(
      1,
      cpuMsOf(() => readWritten(few)),
    )
  expect(Math.min(...Array.from({ length: 5 }, ratio))).toBeLessThan(24)
})

test('the work for such lines has a limit', () => {
  const deep = `${' '.repeat(1_000_000)}a: [\n${'x,\n'.repeat(20)}]\n`
  expect(() => readWritten(deep)).toThrow(
    expect.objectContaining({ fields: { blueprint: [expect.stringContaining('Line 2 cannot be read')] } }),
  )
})
