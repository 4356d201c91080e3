import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { codeOfIssue, nearest, sentence, unknownName } from '../src/messages.ts'
import { costOf } from './support/cpu-time.ts'

const messagesOf = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value).error?.issues.map(({ message }) => message)

test.each<[string, z.ZodType, unknown, string]>([
  ['nothing', z.object({ a: z.string() }), {}, 'This field is required.'],
  ['text', z.string(), 5, 'Must be text.'],
  ['a number', z.number(), '5', 'Must be a number.'],
  ['a whole number', z.int(), 1.5, 'Must be a whole number.'],
  ['a boolean', z.boolean(), 'true', 'Must be true or false.'],
  ['a list', z.array(z.string()), {}, 'Must be a list.'],
  ['an object', z.object({}), [], 'Must be an object.'],
  ['a record', z.record(z.string(), z.string()), 'x', 'Must be an object.'],
  ['something', z.string().min(1), '', 'May not be empty.'],
  ['more', z.string().min(3), 'ab', 'Must be at least 3 characters.'],
  ['less', z.string().max(3), 'abcd', 'Must be at most 3 characters.'],
  ['fewer entries', z.array(z.int()).max(1), [1, 2], 'Must be at most 1 entries.'],
  ['a smaller number', z.number().max(9), 10, 'Must be at most 9.'],
  ['a choice', z.enum(['all', 'any']), 'some', 'Must be one of: all, any.'],
  ['a known field', z.strictObject({}), { a: 1 }, 'Unknown field: a.'],
  ['its own sentence', z.string('Say it.'), 5, 'Say it.'],
])('zod has sentences for the person who wrote the value: %s', (_, schema, value, sentence) => {
  expect(messagesOf(schema, value)).toEqual([sentence])
})

describe('nearest', () => {
  const known = ['client_id', 'client_secret', 'redirect_uris', 'name']

  test.each([
    ['client_di', 'client_id'],
    ['clientid', 'client_id'],
    ['client-secret', 'client_secret'],
    ['redirect_uri', 'redirect_uris'],
    ['nam', 'name'],
    ['Name', 'name'],
    ['n', undefined],
    ['dry_run', undefined],
    ['', undefined],
  ])('%s: %s', (sent, near) => {
    expect(nearest(sent, known)).toBe(near)
  })

  test('is found when one letter of a name is wrong, however many others there are', () => {
    const letter = fc.constantFrom(...'abcdef')
    const word = fc.string({ unit: letter, minLength: 4, maxLength: 9 })
    const mistakes = (name: string, at: number, other: string) => [
      `${name.slice(0, at)}${other}${name.slice(at + 1)}`,
      `${name.slice(0, at)}${other}${name.slice(at)}`,
      `${name.slice(0, at)}${name.slice(at + 1)}`,
    ]
    const mistakesOf = (sent: string) =>
      Array.from({ length: sent.length + 1 }, (_, at) =>
        [...'abcdef'].flatMap((each) => mistakes(sent, at, each)),
      ).flat()
    fc.assert(
      fc.property(word, fc.array(word, { maxLength: 6 }), fc.nat({ max: 3 }), letter, (name, others, at, other) => {
        for (const sent of mistakes(name, at, other)) {
          const near = nearest(sent, [...others, name]) ?? ''
          // Another name may be one letter away too.
          expect([sent, ...mistakesOf(sent)]).toContain(near)
        }
      }),
    )
  })

  test('a name of a million letters is not compared', () => {
    const message = () => expect(unknownName('field', 'x'.repeat(1_000_000), known)).toBe('Unknown field.')
    expect(costOf(message, { enough: 1 })).toBeLessThan(1)
  })
})

test.each([
  ['The row is gone', 'The row is gone.'],
  ['The row is gone.', 'The row is gone.'],
  ['Did you mean name?', 'Did you mean name?'],
])('the sentence %j ends once', (text, ended) => {
  expect(sentence(text)).toBe(ended)
})

test.each<[string, z.ZodType, unknown, string]>([
  ['a missing text', z.object({ a: z.string() }), {}, 'required'],
  ['a missing choice', z.object({ a: z.enum(['x']) }), {}, 'required'],
  ['null', z.string(), null, 'wrong_type'],
  ['an empty text', z.string().min(1), '', 'too_short'],
  ['a long list', z.array(z.string()).max(1), ['a', 'b'], 'too_long'],
  ['a small number', z.int().min(1), 0, 'too_small'],
  ['a large number', z.int().max(1), 2, 'too_large'],
  ['a choice', z.enum(['x']), 'y', 'invalid_choice'],
  [
    'a choice of a list that was made of it',
    z.preprocess((sent) => [sent], z.array(z.enum(['x']))),
    'y',
    'invalid_choice',
  ],
  ['a form', z.guid(), 'y', 'wrong_format'],
  ['an unknown field', z.strictObject({}), { a: 1 }, 'unknown_field'],
  ['a rule', z.string().refine(() => false), 'y', 'invalid_value'],
  ['a rule with a code', z.string().refine(() => false, { params: { code: 'duplicate' } }), 'y', 'duplicate'],
  ['a rule with another word', z.string().refine(() => false, { params: { code: 'toString' } }), 'y', 'invalid_value'],
])('the code of %s', (_, schema, value, code) => {
  const [issue] = schema.safeParse(value).error?.issues ?? []
  expect(issue && codeOfIssue(issue, value)).toBe(code)
})
