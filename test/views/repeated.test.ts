import { expect, test } from 'vitest'
import { limitMembers } from '../../src/views/repeated.ts'

test.each<[string, number[]]>([
  ['no group', []],
  ['a group of any size', [5_000_000]],
  ['several groups up to the limit', [250_000, 250_000]],
])('%s is shown', (_, numbers) => {
  expect(() => limitMembers(numbers)).not.toThrow()
})

test('several groups of more members are refused, with what to do', () => {
  const detail = [
    'The page shows 500001 members, more than 500000: ask for a smaller page_size, or leave them out with include_users=false.',
  ]
  expect(() => limitMembers([500_000, 1])).toThrow(
    expect.objectContaining({ code: 'invalid', fields: { page_size: detail } }),
  )
})
