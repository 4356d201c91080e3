import { operatorRules } from './operator-rules.ts'
import type { Syntax } from './syntax.ts'

/** Schemes with which a browser would run code or read data that the URL's author chose. */
const forbiddenSchemes: readonly string[] = ['javascript', 'data', 'vbscript', 'file']

// The URL parser ignores these, so that "java\nscript:" would be a scheme.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern must match control characters
const stray = /[\s\\\u0000-\u001f\u007f]/

/** An absolute URL of the web. */
export const httpUrl: Syntax = (text) => {
  if (stray.test(text) || !/^https?:\/\/[^/?#]/i.test(text) || !URL.canParse(text)) {
    return 'Must be a URL that starts with http:// or https://.'
  }
  const { username, password } = new URL(text)
  // Answers and logs would show it: only secret fields are sealed.
  return username === '' && password === '' ? hostError(text) : 'May not hold a user name or password.'
}

/** A placeholder such as `$HOST` is no host, though parsers take it. */
const hostError: Syntax = (text) =>
  /^(\[[\da-f:.]+\]|[\w.-]*)$/i.test(new URL(text).hostname)
    ? undefined
    : 'May hold only letters, digits, hyphens and dots in its host.'

/** An absolute URL of the web or of an app that has registered a scheme. */
export const anyUrl: Syntax = (text) => {
  const [, scheme = ''] = /^([a-z][a-z0-9+.-]*):./i.exec(text) ?? []
  if (forbiddenSchemes.includes(scheme.toLowerCase())) return `May not be a ${scheme.toLowerCase()}: URL.`
  if (/^https?$/i.test(scheme)) return httpUrl(text)
  // "localhost:3000/x" would be a URL with the scheme "localhost".
  const isHostAndPort = /^[^:]*:\d+(?:[/?#]|$)/.test(text)
  if (scheme === '' || isHostAndPort || stray.test(text) || !URL.canParse(text))
    return 'Must be an absolute URL such as https://app.example.com/.'
  return hostError(text)
}

/** A strict redirect URI: RFC 6749, section 3.1.2, requires an absolute URI without a fragment. */
export const redirectUri: Syntax = (text) =>
  anyUrl(text) ?? (text.includes('#') ? 'May not hold a fragment (#).' : undefined)

/** A redirect URI that is compared as it is: patterns of other servers have a `*`. */
export const strictRedirectUri: Syntax = (text) => {
  if (!/^[a-z][a-z\d+.-]*:.*\*/i.test(text)) return redirectUri(text)
  const [, start = '', path = ''] = /^([^/]*\/\/[^/?#]*)(.*)$/.exec(text) ?? ['', '', text]
  const escaped = (part: string) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
  const host = escaped(start).replace(/:\*$/, ':[0-9]+').replaceAll('*', '[A-Za-z0-9-]+')
  return `Is compared as it is, so that its * matches nothing else: send it with "matching_mode": "regex", as ${host}${escaped(path).replaceAll(/(?:\\\.)?\*+/g, '.*')}`
}

/** The fields of the caller's own user that a launch URL may hold, as `%(username)s`. */
export const launchUrlFields: readonly string[] = ['pk', 'username', 'name', 'email', 'uid', 'uuid', 'path', 'type']

/**
 * A URL with placeholders that a browser opens from a list of applications. The scheme may not be a placeholder: users choose
 * their names, and must not choose a scheme.
 */
export const launchUrl: Syntax = (text) => {
  let error: string | undefined
  const filled = text.replace(/%\(([^)]*)\)s/g, (_, field: string) => {
    if (!launchUrlFields.includes(field)) {
      error ??= `%(${field})s is no placeholder: use ${launchUrlFields.map((known) => `%(${known})s`).join(', ')}.`
    }
    return 'x'
  })
  if (error !== undefined) return error
  if (filled.includes('%(')) return 'Holds a placeholder that does not end: write %(username)s.'
  if (text.startsWith('%(')) return 'May not start with a placeholder: write the scheme out.'
  return anyUrl(filled) ?? launchScheme(filled)
}

function launchScheme(url: string): string | undefined {
  const { protocol, username, password } = new URL(url)
  const { launchSchemes } = operatorRules() ?? {}
  if (launchSchemes !== undefined && !launchSchemes.includes(protocol.slice(0, -1)))
    return `Must start with one of: ${launchSchemes.join(', ')}. The operator adds others to LAUNCH_SCHEMES.`
  return username === '' && password === '' ? undefined : 'May not hold a user name or password.'
}

/** @returns scheme and host of a URL that has both, else null */
export function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, host } = new URL(text)
  return host === '' ? null : `${protocol}//${host}`
}
