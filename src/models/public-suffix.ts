import { parse } from 'tldts'

/** Whether any party may register a host directly below it: browsers keep no cookies for it. */
export const isPublicSuffix = (domain: string): boolean => {
  const { publicSuffix, isIcann, isPrivate } = parse(domain, { allowPrivateDomains: true })
  return publicSuffix === domain && (isIcann === true || isPrivate === true)
}

/**
 * Whether a domain is at least one label below a public suffix (publicsuffix.org, with its private section): then one owner has
 * all hosts below it. A suffix that is not in the list is unknown.
 */
export function isRegistrable(domain: string): boolean {
  const { domain: found, isIcann, isPrivate } = parse(domain, { allowPrivateDomains: true })
  return found !== null && (isIcann === true || isPrivate === true)
}
