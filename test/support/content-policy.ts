/** A Content-Security-Policy by directive: `{ 'script-src': ["'self'"] }`. */
export const contentPolicy = (header: unknown): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    String(header)
      .split(';')
      .map((directive) => directive.trim().split(/\s+/))
      .map(([name = '', ...sources]) => [name, sources]),
  )
