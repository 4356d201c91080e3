import type { Syntax } from './syntax.ts'

/** A browser that follows one of these runs or reads what the writer of the URL chose. */
const forbiddenSchemes: readonly string[] = ['javascript', 'data', 'vbscript', 'file']

// The URL parser reads over these, so that "java\nscript:" would be a scheme; nobody means them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const stray = /[\s\\\u0000-\u001f\u007f]/

/** An absolute URL of the web. */
export const httpUrl: Syntax = (text) => {
  if (stray.test(text) || !/^https?:\/\/[^/?#]/i.test(text) || !URL.canParse(text)) {
    return 'Must be a URL that starts with http:// or https://.'
  }
  const { username, password } = new URL(text)
  // It would be shown and logged: only members marked as secrets are sealed.
  return username === '' && password === '' ? undefined : 'May not hold a user name or password.'
}

/** An absolute URL of the web or of an app that has registered a scheme. */
export const anyUrl: Syntax = (text) => {
  const [, scheme = ''] = /^([a-z][a-z0-9+.-]*):./i.exec(text) ?? []
  if (forbiddenSchemes.includes(scheme.toLowerCase())) return `May not be a ${scheme.toLowerCase()}: URL.`
  if (/^https?$/i.test(scheme)) return httpUrl(text)
  // "localhost:3000/x" would be a URL with the scheme "localhost".
  const isHostAndPort = /^[^:]*:\d+(?:[/?#]|$)/.test(text)
  if (scheme === '' || isHostAndPort || stray.test(text) || !URL.canParse(text))
    return 'Must be an absolute URL such as https://app.example.com/.'
  return undefined
}

/** A strict redirect URI: RFC 6749, section 3.1.2, wants an absolute URI, which has no fragment. */
export const redirectUri: Syntax = (text) =>
  anyUrl(text) ?? (text.includes('#') ? 'May not hold a fragment (#).' : undefined)

/** The members of the caller's own user that a launch URL may hold, as `%(username)s`. */
export const launchUrlMembers: readonly string[] = ['pk', 'username', 'name', 'email', 'uid', 'uuid', 'path', 'type']

/** `anyUrl` with placeholders. The scheme is none of them: a user who picks his name must not pick it. */
export const launchUrl: Syntax = (text) => {
  let fault: string | undefined
  const filled = text.replace(/%\(([^)]*)\)s/g, (_, member: string) => {
    if (!launchUrlMembers.includes(member)) {
      fault ??= `%(${member})s is no placeholder: use ${launchUrlMembers.map((known) => `%(${known})s`).join(', ')}.`
    }
    return 'x'
  })
  if (fault !== undefined) return fault
  if (filled.includes('%(')) return 'Holds a placeholder that does not end: write %(username)s.'
  return text.startsWith('%(') ? 'May not start with a placeholder: write the scheme out.' : anyUrl(filled)
}

/** @returns scheme and host of a URL that has both, else null */
export function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, host } = new URL(text)
  return host === '' ? null : `${protocol}//${host}`
}
