import { RE2JS } from 're2js'

export type RedirectUri = { readonly matching_mode: string; readonly url: string }

/** Schemes with which a browser would run code or read data that the URL's author chose. */
const forbidden = /^(?:javascript|data|vbscript|file):/i
// The URL parser drops some of these: another host would be asked than the one that was compared.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern must match control characters
const stray = /[\s\\\u0000-\u001f\u007f]/

/** An absolute URI without a fragment (RFC 6749, section 3.1.2), a user name or a password. */
function isPlain(uri: string): boolean {
  if (stray.test(uri) || uri.includes('#') || forbidden.test(uri) || !URL.canParse(uri)) return false
  const { username, password } = new URL(uri)
  return username === '' && password === ''
}

/**
 * Whether a client may have its users sent to this URI. Strict: as it is, character by character. A pattern of RE2 matches a URI as a
 * whole, with or without anchors. A mode that is not known matches nothing.
 */
export const isRegistered = (registered: readonly RedirectUri[], uri: string): boolean =>
  isPlain(uri) &&
  registered.some(({ matching_mode, url }) => {
    if (matching_mode === 'strict') return url === uri
    return matching_mode === 'regex' && RE2JS.matches(url, uri)
  })
