import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isKept, mayLoseDigits, parseJson, Unkept } from '../src/numbers.ts'

const kept = ['0', '-0', '0.0', '0e9', '1.10', '1.0', '1e3', '1E+3', '-1.50e-7', '9007199254740991', '9007199254740992']
const keptLong = ['1056712345678901200', '1e21', '1.7976931348623157e308', '5e-324', '0.1', '100000000000000000000']
const lost = [
  '9007199254740993',
  '-9007199254740993',
  '1056712345678901234',
  '1e400',
  '-1e400',
  '1e-400',
  '1e99999999999',
]
const lostLong = [
  '0.1000000000000000055',
  '3.14159265358979323846',
  '1234567890.12345678',
  '9'.repeat(400),
  '0'.repeat(2_000),
]
const yaml = ['+7', '.5', '1.', '0o17', '0x1f', '0x1fffffffffffff']
const lostYaml = ['0x20000000000001', '0o400000000000000001', '.inf', '-.inf', '.nan', '+9007199254740993']

test.each([...kept, ...keptLong, ...yaml])('%s keeps all of its digits', (written) =>
  expect(isKept(written)).toBe(true),
)
test.each([...lost, ...lostLong, ...lostYaml])('%s does not', (written) => {
  expect([isKept(written), mayLoseDigits(`: ${written},`)]).toEqual([false, true])
})

test('what a number prints is kept, and what is not looked at is', () => {
  const double = fc.double({ noDefaultInfinity: true, noNaN: true })
  fc.assert(fc.property(double, (each) => isKept(String(each))))
  const digits = fc.stringMatching(/^-?(0|[1-9]\d{0,19})(\.\d{1,19})?([eE][-+]?\d{1,3})?$/)
  fc.assert(fc.property(digits, (written) => isKept(written) || mayLoseDigits(written)))
  expect(mayLoseDigits('1e400')).toBe(true)
})

describe('JSON', () => {
  test('has marks in the place of such numbers alone', () => {
    const text = '{"a": [1, 1056712345678901234, "1056712345678901234"], "b": {"1056712345678901234": 1e400}}'
    expect(parseJson(text)).toEqual({
      a: [1, new Unkept(Number('1056712345678901234')), '1056712345678901234'],
      b: { '1056712345678901234': new Unkept(Number.POSITIVE_INFINITY) },
    })
  })

  test('that nests deeper than a reviver goes is read all the same', () => {
    const depth = 100_000
    expect(Array.isArray(parseJson(`${'['.repeat(depth)}1e400${']'.repeat(depth)}`))).toBe(true)
  })
})
