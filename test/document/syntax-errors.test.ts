import { expect, test } from 'vitest'
import { readSentText } from '../../src/document/yaml.ts'
import type { Problem } from '../../src/errors.ts'

/** What people write that is not YAML: the parser's reason, a part of the hint, its line and its column. */
test.each([
  ['a tab', 'a:\n  b: 1\n\tc: 2\n', 'tab characters must not be used in indentation.', '', 3, 1],
  ['an open brace', 'a: {b: 1\nc: 2\n', 'deficient indentation.', 'A bracket or quote above is never closed', 2, 1],
  ['an open brace at the end', 'a: [{', 'unexpected end of the stream within a flow collection.', '', 1, 6],
  ['open quotes', 'a: 1\nb: "x\nc: 1\n', 'deficient indentation.', 'A bracket or quote above is never closed', 3, 1],
  ['a key too far left', 'a:\n   b: 1\n  c: 2\n', 'bad indentation of a mapping entry.', 'begin in one column', 3, 3],
  ['a colon in a text', '- a: see: this\n', 'bad indentation of a mapping entry.', 'a text with ": "', 1, 9],
  ['an at sign', 'a: @x\n', 'bad indentation of a mapping entry.', 'a leading sign such as @ stands in quotes', 1, 4],
  [
    'no space after a colon',
    'b: 2\na:1\nc: 3\n',
    'can not read a block mapping entry; a multiline key may not be an implicit key.',
    'see this line and the one above',
    3,
    2,
  ],
  [
    'no space after the first colon',
    'a:1\nb: 2\n',
    'end of the stream or a document separator is expected.',
    'with a colon and a space behind each: see this line and the one above',
    2,
    2,
  ],
  ['a key twice', 'a:\n  b: 1\n  c: 2\n  "b": 3\n', 'duplicated mapping key.', '', 4, 4],
  ['a star', 'a: *.example.com\n', 'unidentified alias.', '', 1, 5],
  ['an unknown tag', 'a: !Foo x\n', 'unknown scalar tag.', 'A text that begins with ! stands in quotes.', 1, 4],
  ['a mistyped tag', 'a: [!Keyof x]\n', 'unknown scalar tag.', 'Did you mean !KeyOf?', 1, 5],
  [
    'a tag of another program',
    'a: !vault x\n',
    'unknown scalar tag.',
    'A text that begins with ! stands in quotes. Tags are !Env, !File, !Context, !Format, !If, !Condition, !Enumerate, !Index, !Value, !AtIndex, !Find, !KeyOf.',
    1,
    4,
  ],
  ['!KeyOf before a list', 'a: !KeyOf [x]\n', 'unknown sequence tag.', '!KeyOf takes a text.', 1, 4],
  ['a tag before a mapping', 'a: !If {x: 1}\n', 'unknown mapping tag.', '!If takes a text or a list.', 1, 4],
  ['a Windows path', 'a: "C:\\Users"\n', 'expected hexadecimal character.', '', 1, 9],
  ['no comma', 'a: {b: 1 c: 2}\n', 'missed comma between flow collection entries.', '', 1, 11],
  [
    'a template',
    'b: 1\na: {{ x }}\n',
    'object-based map does not support complex keys.',
    'A text with braces or brackets, such as {{ name }}, stands in quotes.',
    2,
    5,
  ],
  ['lines that end with a carriage return', 'a: 1\rb: {', 'unexpected end of the stream within a flow', '', 2, 5],
])('%s', (_, text, reason, hint, line, column) => {
  const message = expect.stringMatching(
    `^Line ${line} cannot be read as YAML: ${RegExp.escape(reason)}.*${RegExp.escape(hint)}`,
  )
  expect(() => readSentText(text)).toThrow(
    expect.objectContaining<Partial<Problem>>({
      fields: { blueprint: [message] },
      errors: [{ path: ['blueprint'], code: 'syntax', message, place: { pointer: [], line, column } }],
    }),
  )
})

test.each([
  ['a: !s3cret x'],
  ['a: !s3cret!x y'],
  ['a: !s3^cret x'],
  ['a: *s3cret'],
  ['a: *"s3cret"'],
  ['a: "s3cret" s3cret'],
  ['a: s3cret: s3cret'],
  ['s3cret'.concat('\na: 1')],
  ['a: "\\s3cret"'],
  ['a: [s3cret'],
])('%j is refused without its text', (text) => {
  expect(() => readSentText(text)).toThrow(
    expect.objectContaining({ fields: { blueprint: [expect.not.stringMatching(/s3|cret/)] } }),
  )
})
