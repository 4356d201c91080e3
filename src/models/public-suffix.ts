import { parse } from 'tldts'

/**
 * Whether a domain is at least one label below a public suffix (publicsuffix.org, with its private section): then one
 * owner has all hosts below it. A suffix that is not in the list is unknown.
 */
export function isRegistrable(domain: string): boolean {
  const { domain: found, isIcann, isPrivate } = parse(domain, { allowPrivateDomains: true })
  return found !== null && (isIcann === true || isPrivate === true)
}
