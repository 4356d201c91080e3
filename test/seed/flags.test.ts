import { expect, test } from 'vitest'
import { parseFlags } from '../../tools/seed/flags.ts'

test.each([
  [[], { users: 1_000, groups: 80, applications: 20 }],
  [['--users', '100000'], { users: 100_000, groups: 2_000, applications: 200 }],
  [['--users=10'], { users: 10, groups: 80, applications: 20 }],
  [['--users', '1000000'], { users: 1_000_000, groups: 20_000, applications: 2_000 }],
  [['--applications', '200000'], { users: 1_000, groups: 80, applications: 200_000 }],
  [['--groups', '300', '--applications', '1'], { users: 1_000, groups: 300, applications: 1 }],
])('%j', (args, size) => {
  expect(parseFlags(args)).toEqual({ seed: 1, size, database: null })
})

test('a seed and a database are used as given', () => {
  const url = 'postgresql://ada:secret@db.example.com/gatewright'
  expect(parseFlags(['--seed', '0', '--database', url])).toMatchObject({ seed: 0, database: url })
})

test.each([['--help'], ['-h']])('%s requests help', (flag) => {
  expect(parseFlags([flag])).toBeNull()
})

test.each([
  [['--user', '5'], '--user: Unknown option. Did you mean users?'],
  [['-u', '5'], '-u: Unknown option.'],
  [['--users'], '--users needs a value'],
  [['--users', '--seed'], '--users is "--seed": it takes a whole number from 10 to 1000000.'],
  [['--users', '9'], 'from 10'],
  [['--users', '1000001'], 'to 1000000'],
  [['--users', '1e3'], '--users is "1e3"'],
  [['--users', '-5'], '--users is "-5"'],
  [['--users', '50', '--users', '60'], '--users stands twice'],
  [['--groups', '79'], '--groups is "79": it takes a whole number from 80'],
  [['--applications', '200001'], '--applications is "200001": it takes a whole number from 1 to 200000.'],
  [['--seed', '2147483648'], '--seed is "2147483648"'],
  [['100000'], '"100000" is no option'],
  [['--database', 'mysql://db'], '--database is not a URL that starts with postgresql://'],
  [['--database', 'secret'], '--database is not a URL'],
])('%j is refused', (args, sentence) => {
  expect(() => parseFlags(args)).toThrow(sentence)
  expect(() => parseFlags(args)).toThrow(expect.objectContaining({ name: 'StartError' }))
})
