/** Numbers in texts. JavaScript keeps 15 to 17 digits of a number: one that it would round or drop is refused. */

export const notKept = 'Is a number that is not kept digit for digit: send it as text, in quotes.'

/** Numbers of more characters are not kept: a double never prints that many. */
const longest = 400

/** @param written a number in JSON or YAML @returns whether it keeps all of its digits; 1.10 and 1e3 do */
export function isKept(written: string): boolean {
  if (written.length > longest) return false
  const exact = digitsOf(/^0[ox]/.test(written) ? String(BigInt(written)) : written)
  return exact !== undefined && exact === digitsOf(String(Number(written)))
}

/** The digits of a decimal, the same for equal numbers; undefined for other texts, such as Infinity. */
function digitsOf(decimal: string): string | undefined {
  const found = /^([-+]?)(\d*)\.?(\d*)(?:e([-+]?\d+))?$/i.exec(decimal)
  if (found === null) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = found
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  const power = Number(exponent) - fraction.length + digits.length - significant.length
  return `${sign === '-' ? '-' : ''}${significant}e${power}`
}

/** Whether a text may hold a number that is not kept: one of many digits, or with a long exponent. */
export const mayLoseDigits = (text: string): boolean =>
  /(?:\d\.?){16}|[\d.]e[-+]?\d{3}|0[ox][\da-f]{13}|\.(?:inf|nan)/i.test(text)

/** Replaces a number in parsed JSON that is not kept. */
export class Unkept {
  /** The rounded number; finite, so that other checks can go on. */
  readonly value: number
  constructor(value: number) {
    this.value = Number.isFinite(value) ? value : Math.sign(value) * Number.MAX_SAFE_INTEGER
  }
}

/** Parses JSON, with `Unkept` in the place of numbers that are not kept. @throws {SyntaxError} */
export function parseJson(text: string): unknown {
  if (!mayLoseDigits(text)) return JSON.parse(text)
  try {
    return JSON.parse(text, (_: string, value: unknown, written?: { source?: string }) =>
      typeof value === 'number' && !isKept(written?.source ?? '0') ? new Unkept(value) : value,
    )
  } catch (error) {
    // The reviver has no room in a text that is nested this deep. It is far deeper than any limit, for which it is refused.
    if (error instanceof RangeError) return JSON.parse(text)
    throw error
  }
}
