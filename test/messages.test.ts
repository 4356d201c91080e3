import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { nearest, unknownName } from '../src/messages.ts'
import { cpuMsOf } from './support/cpu-time.ts'

const said = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues.map(({ message }) => message)

describe('zod speaks to the person who wrote the value', () => {
  test.each<[string, z.ZodType, unknown, string]>([
    ['nothing', z.object({ a: z.string() }), {}, 'This member is required.'],
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
    ['a known member', z.strictObject({}), { a: 1 }, 'Unknown member: a.'],
    ['its own sentence', z.string('Say it.'), 5, 'Say it.'],
  ])('%s', (_, schema, value, sentence) => {
    expect(said(schema, value)).toEqual([sentence])
  })
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

  test('is as near as the others', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 })
    fc.assert(
      fc.property(word, fc.array(word, { maxLength: 6 }), (sent, names) => {
        const near = nearest(sent, names)
        if (names.includes(sent)) expect(near).toBe(sent)
        if (near !== undefined) expect(names).toContain(near)
      }),
    )
  })

  test('a name of a million letters is not measured', () => {
    const tell = () => expect(unknownName('member', 'x'.repeat(1_000_000), known)).toBe('Unknown member.')
    expect(cpuMsOf(tell)).toBeLessThan(50)
  })
})
