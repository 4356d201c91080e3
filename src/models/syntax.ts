import { isIPv4, isIPv6 } from 'node:net'
import { notKept, Unkept } from '../numbers.ts'
import { operatorRules } from './operator-rules.ts'

/** Checks the form of a text. A pure function. @returns a sentence about the error; undefined for a valid text */
export type Syntax = (text: string) => string | undefined

/** @returns a syntax that an empty text satisfies too */
export const blankOr =
  (syntax: Syntax): Syntax =>
  (text) =>
    text === '' ? undefined : syntax(text)

/** A label in a header: without characters that cannot be seen, and without a comma, which joins doubled headers. */
export const visibleLabel: Syntax = (text) =>
  /[\p{C},]|^\s|\s$/u.test(text) ? 'May have no comma, no control character, and no space at either end.' : undefined

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
  const seconds = durationSeconds(text)
  return typeof seconds === 'string' ? seconds : undefined
}

/** @returns the seconds of a duration; a sentence about the error of another text */
export function durationSeconds(text: string): number | string {
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
  return Math.abs(seconds) <= centurySeconds ? seconds : 'Must be at most 100 years.'
}

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
// Two RFC 1123 labels or more. The last may not be all digits, as in an address (RFC 3696, section 2).
const domainPattern = new RegExp(`^(?=.{1,253}$)(?:${label}\\.)+(?!\\d+$)${label}$`, 'i')

export const domain: Syntax = (text) =>
  domainPattern.test(text)
    ? undefined
    : 'Must be a domain name such as example.com; an international one starts with xn--.'

/** The scope-token of RFC 6749, section 3.3. */
export const scope: Syntax = (text) =>
  /^[!#-[\]-~]+$/.test(text) ? undefined : 'Must be a scope: ASCII letters and signs without spaces, " and \\.'

/** The domain of a cookie. One label is a host of a closed network; a leading dot is ignored (RFC 6265, section 5.2.3). */
export const cookieDomain: Syntax = (text) => {
  const host = text.replace(/^\./, '')
  const error = domain(`sub.${host}`)
  return error === undefined && operatorRules()?.isPublicSuffix(host)
    ? `Is a domain under which others have hosts, for which browsers keep no cookies: such as app.${host}.`
    : error
}

const mailHost =
  /^(?=.{1,253}$)(?!(?:.*\.)?\d+$)(?:[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?(?:\.(?!$)|$))+$/u
const mailbox = /^[\w!#$%&'*+/=?^`{|}~\p{L}\p{M}\p{N}-]+(?:\.[\w!#$%&'*+/=?^`{|}~\p{L}\p{M}\p{N}-]+)*$/u

/** The dot-atom form of RFC 5322, which mail systems use, in all languages (RFC 6531). One label is a host of a closed network. */
export const email: Syntax = (text) => {
  const [, local = '', host = ''] = /^([^@]*)@([^@]*)$/.exec(text) ?? []
  return Buffer.byteLength(local) <= 64 && mailbox.test(local) && mailHost.test(host)
    ? undefined
    : 'Must be an e-mail address such as ada@example.com.'
}

// RFC 4514, section 3: characters that a value must escape, escapes in hexadecimal, and the attribute's name.
const dnValue = '(?:\\\\(?:[ "#+,;<=>\\\\]|[0-9A-Fa-f]{2})|[^\\\\"+,;<>])+'
const dnPart = new RegExp(` *(?:[A-Za-z][A-Za-z0-9-]*|\\d+(?:\\.\\d+)+) *=(${dnValue})`, 'y')

/** A distinguished name (RFC 4514); spaces around its separators are ignored, as in RFC 2253. */
export const distinguishedName: Syntax = (text) => {
  const error = 'Must be a distinguished name such as DC=ldap,DC=example,DC=com.'
  dnPart.lastIndex = 0
  for (;;) {
    const value = dnPart.exec(text)?.[1]?.trim()
    if (value === undefined || value === '') return error
    if (value.startsWith('#') && !/^#(?:[0-9A-Fa-f]{2})+$/.test(value)) return error
    if (dnPart.lastIndex === text.length) return undefined
    if (!/[,+]/.test(text.charAt(dnPart.lastIndex))) return error
    dnPart.lastIndex += 1
  }
}

const maxNetworks = 500

/** IPv4 and IPv6 networks, separated by commas. An address is the network of itself alone. */
export const cidrList: Syntax = (text) => {
  const networks = text.split(',').map((network) => network.trim())
  if (networks.length > maxNetworks) return `Must hold at most ${maxNetworks} networks.`
  const wrong = networks.find((network) => !isCidr(network))
  if (wrong === undefined) return undefined
  return `Must be networks such as 10.0.0.0/8, 2001:db8::/32, separated by commas: ${JSON.stringify(wrong)} is none.`
}

function isCidr(network: string): boolean {
  const [, address = '', prefix = '0'] = /^([^/%]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(network) ?? []
  return (isIPv4(address) && Number(prefix) <= 32) || (isIPv6(address) && Number(prefix) <= 128)
}

export const username: Syntax = (text) =>
  /^[\p{L}\p{M}\p{N}@.+_-]+$/u.test(text) ? undefined : 'May hold only letters, digits and @ . + - _ characters.'

/** A folder in the tree of users: `users/contractors`. */
export const path: Syntax = (text) =>
  text.split('/').includes('')
    ? 'Must be a path such as users/staff: no slash first, last or twice in a row.'
    : undefined

/** A text that PostgreSQL can store and JSON can carry without loss. */
export const storable: Syntax = (text) =>
  text.includes('\0') || !text.isWellFormed() ? 'May not hold NUL characters or halves of surrogate pairs.' : undefined

const maxDepth = 32

/** `storable` for a free-form JSON value, at all depths. */
export function storableJson(value: unknown, depth = 1): string | undefined {
  if (typeof value === 'string') return storable(value)
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'Must hold finite numbers.'
  if (value instanceof Unkept) return notKept
  if (value === null || typeof value === 'boolean') return undefined
  if (depth > maxDepth) return `Must nest at most ${maxDepth} levels deep.`
  if (Array.isArray(value)) return first(value, (item) => storableJson(item, depth + 1))
  const isPlain = typeof value === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(value))
  if (!isPlain) return 'Must hold plain JSON values only.'
  return first(Object.entries(value), ([key, item]) => fieldName(key) ?? storableJson(item, depth + 1))
}

/** The name of a field. `__proto__` is forbidden: code that copies fields one by one would set the prototype. */
export const fieldName: Syntax = (name) =>
  name === '__proto__' ? 'May not hold a field with the name __proto__.' : storable(name)

/** Characters of a JSON value as PostgreSQL stores it: it writes numbers out, 1e308 with 309 digits. */
export function storedLength(value: unknown): number {
  let more = 0
  const text = JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === 'number') more += writtenOut(each) - String(each).length
    return each
  })
  return text.length + more
}

/** The length of a number without an exponent. */
function writtenOut(number: number): number {
  const [, sign = '', fraction = '', exponent] = /^(-?)\d(?:\.(\d+))?e([+-]\d+)$/.exec(String(number)) ?? []
  if (exponent === undefined) return String(number).length
  const places = Number(exponent)
  // Digits before the point, or `0.`, zeros and the digits.
  return sign.length + (places > 0 ? 1 + Math.max(places, fraction.length) : 2 - places + fraction.length)
}

const first = <Item>(items: readonly Item[], errorOf: (item: Item) => string | undefined): string | undefined =>
  items
    .values()
    .map(errorOf)
    .find((error) => error !== undefined)
