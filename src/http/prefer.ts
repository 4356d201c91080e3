/**
 * The preferences of a request (RFC 7240, section 2), by name in lower case. The first of two with one name counts. A value in
 * quotes is kept only if it is a number: no preference of this API takes another one.
 */
export function preferencesIn(header: string | string[] | undefined): ReadonlyMap<string, string> {
  const unquoted = String(header ?? '')
    .replaceAll(/"(\d+)"/g, '$1')
    .replaceAll(/"(?:[^"\\]|\\.?)*(?:"|$)/g, '""')
  const found = new Map<string, string>()
  for (const each of unquoted.split(',')) {
    const [name = '', value = ''] = (each.split(';')[0] ?? '').split('=').map((part) => part.trim())
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), value)
  }
  return found
}
