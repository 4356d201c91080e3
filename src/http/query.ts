import { z } from 'zod'

/** Parameters of a query string. */

export const once = 'Send this parameter once.'

export const queryBoolean = z
  .string(once)
  .regex(/^(true|false)$/i, 'Must be true or false.')
  .transform((text) => text.toLowerCase() === 'true')
  // The API's description shows this type.
  .meta({ type: 'boolean' })

/** A parameter that is false unless it is sent. */
export const flag = (description: string) => queryBoolean.default(false).meta({ description })

/**
 * A point in time, converted to UTC and microseconds, as PostgreSQL keeps it. PostgreSQL would refuse the sent text when it has
 * an offset of 16 hours or more, a long fraction, or a time that its offset moves into year 0 or 10000.
 */
export const queryTime = z
  .string(once)
  .pipe(z.iso.datetime({ offset: true, error: 'Must be a date-time such as 2026-11-20T08:15:00Z.' }))
  .transform((text, context) => {
    const at = inUtc(text)
    if (at !== undefined) return at
    context.addIssue({ code: 'custom', message: 'Must be between the years 1 and 9999, in UTC.' })
    return z.NEVER
  })

function inUtc(text: string): string | undefined {
  const [, whole = '', fraction = '', zone = ''] = /^([^.Z+]+?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(text) ?? []
  const at = new Date(`${whole}${zone}`)
  const year = at.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) return undefined
  return `${at.toISOString().slice(0, -5)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`
}
