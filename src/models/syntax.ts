import { isIPv4, isIPv6 } from 'node:net'

/** What a text must look like, as pure functions: each answers a sentence that says what to mend, or undefined. */
export type Syntax = (text: string) => string | undefined

/** @returns a syntax that an empty text satisfies too */
export const blankOr =
  (syntax: Syntax): Syntax =>
  (text) =>
    text === '' ? undefined : syntax(text)

const unitSeconds: ReadonlyMap<string, number> = new Map([
  ['microseconds', 1e-6],
  ['milliseconds', 1e-3],
  ['seconds', 1],
  ['minutes', 60],
  ['hours', 3_600],
  ['days', 86_400],
  ['weeks', 604_800],
])

const centurySeconds = 36_525 * 86_400

/** `hours=1;minutes=30`: numbers may be negative or fractional. */
export const duration: Syntax = (text) => {
  const such = 'Must be a duration such as hours=1;minutes=30'
  const seen = new Set<string>()
  let seconds = 0
  for (const part of text.split(';')) {
    const [, unit = '', amount] = /^([A-Za-z]+)=([-+]?(?:\d+(?:\.\d+)?|\.\d+))$/.exec(part) ?? []
    if (unit === '') return `${such}.`
    const factor = unitSeconds.get(unit)
    if (factor === undefined) return `${such}: ${unit} is none of ${[...unitSeconds.keys()].join(', ')}.`
    if (seen.has(unit)) return `${such}: ${unit} stands twice.`
    seen.add(unit)
    seconds += Number(amount) * factor
  }
  return Math.abs(seconds) <= centurySeconds ? undefined : 'Must be at most 100 years.'
}

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
// RFC 1123 labels, two at least; a last label of digits would be an address (RFC 3696, section 2).
const domainPattern = new RegExp(`^(?=.{1,253}$)(?:${label}\\.)+(?!\\d+$)${label}$`, 'i')

export const domain: Syntax = (text) =>
  domainPattern.test(text)
    ? undefined
    : 'Must be a domain name such as example.com; an international one starts with xn--.'

/** The dot-atom form of RFC 5322, as mail systems use it. */
export const email: Syntax = (text) => {
  const [, local = '', host = ''] = /^([^@]*)@([^@]*)$/.exec(text) ?? []
  const isLocal = local.length <= 64 && /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/.test(local)
  return isLocal && domain(host) === undefined ? undefined : 'Must be an e-mail address such as ada@example.com.'
}

// RFC 4514, section 3: the characters that a value holds only escaped; a value in hexadecimal; the attribute's name.
const dnValue = '(?:\\\\(?:[ "#+,;<=>\\\\]|[0-9A-Fa-f]{2})|[^\\\\"+,;<>])+'
const dnPart = new RegExp(` *(?:[A-Za-z][A-Za-z0-9-]*|\\d+(?:\\.\\d+)+) *=(${dnValue})`, 'y')

/** A distinguished name (RFC 4514); spaces around its separators are read over, as RFC 2253 asked. */
export const distinguishedName: Syntax = (text) => {
  const fault = 'Must be a distinguished name such as DC=ldap,DC=example,DC=com.'
  dnPart.lastIndex = 0
  for (;;) {
    const value = dnPart.exec(text)?.[1]?.trim()
    if (value === undefined || value === '') return fault
    if (value.startsWith('#') && !/^#(?:[0-9A-Fa-f]{2})+$/.test(value)) return fault
    if (dnPart.lastIndex === text.length) return undefined
    if (!/[,+]/.test(text.charAt(dnPart.lastIndex))) return fault
    dnPart.lastIndex += 1
  }
}

const maxNetworks = 500

/** Networks of either family, separated by commas. */
export const cidrList: Syntax = (text) => {
  const networks = text.split(',').map((network) => network.trim())
  if (networks.length > maxNetworks) return `Must hold at most ${maxNetworks} networks.`
  const wrong = networks.find((network) => !isCidr(network))
  if (wrong === undefined) return undefined
  return `Must be networks such as 10.0.0.0/8, 2001:db8::/32, separated by commas: ${JSON.stringify(wrong)} is none. A single address ends in /32 or /128.`
}

function isCidr(network: string): boolean {
  const [, address = '', prefix = ''] = /^([^/%]+)\/(0|[1-9]\d{0,2})$/.exec(network) ?? []
  return (isIPv4(address) && Number(prefix) <= 32) || (isIPv6(address) && Number(prefix) <= 128)
}

/** Compiled to see whether it can be, never run: an expression may take forever on a text it is made for. */
export const regularExpression: Syntax = (text) => {
  try {
    new RegExp(text)
    return undefined
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(error.message.lastIndexOf(': ') + 2) : 'not readable'
    return `Must be a regular expression: ${reason}.`
  }
}

/** One expression a line; empty lines are read over. */
export const regularExpressionLines: Syntax = (text) => {
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const fault = regularExpression(line)
    if (fault !== undefined) return `Line ${index + 1}: ${fault}`
  }
  return undefined
}

export const username: Syntax = (text) =>
  /^[\p{L}\p{M}\p{N}@.+_-]+$/u.test(text) ? undefined : 'May hold only letters, digits and @ . + - _ characters.'

/** Where a user stands in the tree of users: `users/contractors`. */
export const path: Syntax = (text) =>
  text.split('/').includes('')
    ? 'Must be a path such as users/staff: no slash first, last or twice in a row.'
    : undefined

/** What PostgreSQL stores and JSON carries without loss. */
export const storable: Syntax = (text) =>
  text.includes('\0') || !text.isWellFormed() ? 'May not hold NUL characters or halves of surrogate pairs.' : undefined

const maxDepth = 32

/** The same of a free-form JSON value, all the way down. */
export function storableJson(value: unknown, depth = 1): string | undefined {
  if (typeof value === 'string') return storable(value)
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'Must hold finite numbers.'
  if (value === null || typeof value === 'boolean') return undefined
  if (depth > maxDepth) return `Must nest at most ${maxDepth} levels deep.`
  if (Array.isArray(value)) return first(value, (item) => storableJson(item, depth + 1))
  const isPlain = typeof value === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(value))
  if (!isPlain) return 'Must hold plain JSON values only.'
  return first(Object.entries(value), ([key, item]) => storable(key) ?? storableJson(item, depth + 1))
}

function first<Item>(items: readonly Item[], faultOf: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const fault = faultOf(item)
    if (fault !== undefined) return fault
  }
  return undefined
}
