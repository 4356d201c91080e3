import { describe, expect, test } from 'vitest'
import { type Objection, precedence, type Reason, reasonOf } from '../../src/apply/finding.ts'
import { Refusal } from '../../src/apply/refusal.ts'
import { KeyOf } from '../../src/document/document.ts'
import { ErrorList } from '../../src/errors.ts'
import { nothingAllowed } from '../../src/plan/engine.ts'
import { people } from '../rights/people.ts'
import { application, bench, flow, oauth2 } from './engine.ts'

/** One kind of several objections is reported. */

const objectionOf = (reason: Reason): Objection => ({ is: 'stated', reason, text: `it is ${reason}` })

describe('of two kinds of objections, in any order, the first of these is reported', () => {
  test('403, 404, 412, 400, 409', () => {
    expect(precedence).toEqual(['permission_denied', 'not_found', 'precondition_failed', 'invalid', 'conflict'])
  })

  const pairs = precedence.flatMap((first, index) =>
    precedence.slice(index + 1).map((second) => [first, second] as const),
  )
  test.each(pairs)('%s before %s', (first, second) => {
    for (const order of [
      [first, second],
      [second, first],
    ]) {
      const refusal = new Refusal(order.map(objectionOf))
      expect(refusal.reason).toBe(first)
      expect(refusal.logs).toEqual([`rolled back: it is ${first}`])
      expect(refusal.problem).toMatchObject({ code: first, message: `it is ${first}.` })
    }
  })
})

test('all errors of fields are one answer, wherever they were found', () => {
  const [ofDocument, ofEntry] = [new ErrorList(), new ErrorList()]
  ofDocument.add(['entries', 0, 'nam'], 'unknown_field', 'Unknown field.')
  ofEntry.add(['entries', 1, 'slug'], 'taken', 'Is taken.')
  const refusal = new Refusal([
    { is: 'invalid', errors: ofDocument },
    { is: 'invalid', errors: ofEntry },
  ])
  expect(refusal.problem.fields).toEqual({ entries: { 0: { nam: ['Unknown field.'] }, 1: { slug: ['Is taken.'] } } })
  expect(refusal.logs).toEqual([
    'rolled back, for these reasons:',
    'entries.0.nam: Unknown field.',
    'entries.1.slug: Is taken.',
  ])
})

test('more than twenty conflicts are counted', () => {
  const conflicts = Array.from({ length: 23 }, () => objectionOf('conflict'))
  expect(new Refusal(conflicts).logs).toHaveLength(22)
  expect(new Refusal(conflicts).logs.at(-1)).toBe('3 more are not listed.')
  expect(reasonOf({ is: 'gone' })).toBe('permission_denied')
})

describe('the check and the worker, of a document with everything wrong,', async () => {
  const there = await bench()
  const wrong = [
    application('taken', { nam: 1 }),
    { ...flow('there'), id: 'flow' },
    oauth2('other', { authorization_flow: new KeyOf('flow') }),
  ]
  test.each<[string, readonly string[], object, Reason]>([
    ['a denial', ['change_application', 'change_flow'], {}, 'permission_denied'],
    ['an error', ['change_application', 'change_flow', 'add_oauth2provider'], {}, 'invalid'],
  ])('report %s first', async (_, permissions, conditions, reason) => {
    await there.apply([application('taken'), flow('there')])
    const actor = await people(there).user({ permissions })
    const with_ = { allow: nothingAllowed, owner: 'team-b', ...conditions }
    await expect(there.check(wrong, actor, with_)).rejects.toMatchObject({ code: reason })
    // The worker stops at the first entry: its denials are those of the entries until then.
    expect((await there.refusal(wrong.slice(0, 1), actor, with_)).reason).toBe('invalid')
  })
})
