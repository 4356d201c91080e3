import { z } from 'zod'

/** Parameters of a query string. */

export const once = 'Send this parameter once.'

/** `true` or `false`, in any case. */
export const queryBoolean = z
  .string(once)
  .regex(/^(true|false)$/i, 'Must be true or false.')
  .transform((text) => text.toLowerCase() === 'true')
  // For the API's description.
  .meta({ type: 'boolean' })

/** False unless it is sent. */
export const flag = (description: string) => queryBoolean.default(false).meta({ description })
