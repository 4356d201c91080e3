import { expect, test } from 'vitest'
import { readSentText } from '../../src/document/yaml.ts'
import type { Problem } from '../../src/errors.ts'

const indentation = 'keys of one mapping, and items of one list, begin in one column.'

/** What people write that is not YAML, and what they are answered: the sentence, its line and its column. */
test.each([
  ['a tab', 'a:\n  b: 1\n\tc: 2\n', 'Line 3 is indented with a tab: YAML takes spaces.', 3, 1],
  ['a tab before an item', 'a:\n\t- b\n', 'Line 2 is indented with a tab: YAML takes spaces.', 2, 1],
  ['an open brace', 'a: {b: 1\nc: 2\n', 'The `{` of line 1 is never closed.', 1, 4],
  ['an open brace at the end', 'a: 1\nb: [{c: 1}, {', 'The `{` of line 2 is never closed.', 2, 13],
  ['an open bracket', 'a: [1, 2\nb: 3\n', 'The `[` of line 1 is never closed.', 1, 4],
  ['crossed brackets', 'a: [\n1}\n', 'The `[` of line 1 needs its `]` before the `}` of line 2.', 2, 2],
  ['open double quotes', 'a: 1\nb: "x\nc: 1\n', 'The `"` of line 2 is never closed.', 2, 4],
  ['open single quotes', "a: 'x\nb: 1\n", "The `'` of line 1 is never closed.", 1, 4],
  [
    'quotes closed late',
    'a: "x\nb: "y"\n',
    'The `"` of line 1 is closed only in line 2: close it in its own line.',
    1,
    4,
  ],
  [
    'a key that stands too far left',
    'a:\n   b: 1\n  c: 2\n',
    `Line 3 is indented by 2 spaces, which fits no line above it: ${indentation}`,
    3,
    3,
  ],
  [
    'an item too far left',
    'a:\n  - b\n - c\n',
    `Line 3 is indented by 1 space, which fits no line above it: ${indentation}`,
    3,
    2,
  ],
  [
    'a key left of the first',
    '  a: 1\nb: 2\n',
    `Line 2 is not indented, which fits no line above it: ${indentation}`,
    2,
    1,
  ],
  [
    'a key too far right',
    'a: 1\n  b: 2\n',
    'Line 2 is indented more than the key before it, which has its value already: keys of one mapping begin in one column.',
    2,
    3,
  ],
  [
    'a key twice',
    'a:\n  b: 1\n  c: 2\n  "b": 3\n',
    'Line 4 has a key for the second time (first in line 2): a mapping takes each key once.',
    4,
    4,
  ],
  [
    'a key twice in braces',
    'x: {b: 1}\na: {b: 1,\n b: 2}\n',
    'Line 3 has a key for the second time (first in line 2): a mapping takes each key once.',
    3,
    2,
  ],
  [
    'a colon in a text',
    '- a: see: this\n',
    'Line 1 has a second colon with a space behind it: put the text in quotes.',
    1,
    9,
  ],
  ['no space after a colon', 'b: 2\na:1\nc: 3\n', 'Line 2 needs a space after its colon.', 2, 3],
  ['no space after the first colon', 'a:1\nb: 2\n', 'Line 1 needs a space after its colon.', 1, 3],
  ['no colon', 'a: 1\n\njust text\n', 'Line 3 has no colon: an entry of a mapping is written "key: value".', 3, 1],
  [
    'a star',
    'a: *.example.com\n',
    'Line 1 has an alias (*) of an anchor (&) that is not before it: put a text that begins with * in quotes.',
    1,
    5,
  ],
  [
    'an ampersand',
    'a: & x\n',
    'Line 1 has no name behind its & or *: put a text that begins with & or * in quotes.',
    1,
    5,
  ],
  ['an unknown tag', 'a: !Foo x\n', 'Line 1 has an unknown tag: put a text that begins with ! in quotes.', 1, 4],
  ['a mistyped tag', 'a: [!Keyof x]\n', 'Line 1 has an unknown tag: did you mean !KeyOf.', 1, 5],
  ['a tag before a mapping', 'a: !If {x: 1}\n', 'Line 1 has a tag before a mapping: !If takes a text or a list.', 1, 4],
  ['an at sign', 'a: @x\n', 'Line 1 has a text that begins with @: put it in quotes.', 1, 4],
  [
    'a Windows path',
    'a: "C:\\Users"\n',
    'Line 1 has a \\ in double quotes that begins no escape: write \\\\, or take single quotes.',
    1,
    9,
  ],
  [
    'a pattern',
    'a: "\\d+"\n',
    'Line 1 has a \\ in double quotes that begins no escape: write \\\\, or take single quotes.',
    1,
    6,
  ],
  [
    'an apostrophe',
    "a: 'it's'\n",
    "Line 1 goes on behind its closing quote: a ' in single quotes is written twice.",
    1,
    8,
  ],
  [
    'text behind quotes',
    'a: "x" y\n',
    'Line 1 goes on behind its closing quote: a " in double quotes is written \\".',
    1,
    8,
  ],
  [
    'text behind brackets',
    'a: [1]]\n',
    'Line 1 goes on behind its closing bracket: put text with brackets in quotes.',
    1,
    7,
  ],
  ['no comma', 'a: {b: 1 c: 2}\n', 'Line 1 needs a comma before this.', 1, 11],
  ['two commas', 'a: [1,,2]\n', 'Line 1 has a comma with nothing before it.', 1, 7],
  [
    'a template',
    'b: 1\na: {{ x }}\n',
    'Line 2 has a mapping or list as a key: put text with braces or brackets in quotes.',
    2,
    5,
  ],
  ['a list behind a key', 'a: - b\n', 'Line 1 begins a list behind a key: begin it in the next line.', 1, 4],
  [
    'a list below another value',
    'a: 1\n- b\n',
    'Line 2 begins a list item where a key is expected: a list stands below a key of its own.',
    2,
    1,
  ],
  ['text behind a |', 'a: |x\n  y\n', 'Line 1 has text behind its | or >: the text begins in the next line.', 1, 5],
  [
    'a control character',
    'a: x\u0007y\n',
    'Line 1 holds the character U+0007, which YAML does not take as it is.',
    1,
    5,
  ],
  [
    'what has no sentence of its own',
    'a: &x &y 1\n',
    'Line 1 cannot be read as YAML: duplication of an anchor property.',
    1,
    7,
  ],
])('%s', (_, text, message, line, column) => {
  expect(() => readSentText(text)).toThrow(
    expect.objectContaining<Partial<Problem>>({
      fields: { blueprint: [message] },
      errors: [{ path: ['blueprint'], code: 'syntax', message, place: { pointer: [], line, column } }],
    }),
  )
})

test.each([
  ['a: !s3cret x'],
  ['a: *s3cret'],
  ['a: "s3cret" s3cret'],
  ['a: s3cret: s3cret'],
  ['s3cret'.concat('\na: 1')],
  ['a: "\\s3cret"'],
  ['a: [s3cret'],
])('%j is refused without its text', (text) => {
  expect(() => readSentText(text)).toThrow(
    expect.not.objectContaining({ fields: { blueprint: [expect.stringContaining('s3cret')] } }),
  )
})

test('lines that end with a carriage return are counted', () => {
  expect(() => readSentText('a: 1\rb: {\r')).toThrow(
    expect.objectContaining({ fields: { blueprint: ['The `{` of line 2 is never closed.'] } }),
  )
})
