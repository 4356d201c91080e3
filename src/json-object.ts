export type JsonObject = Readonly<Record<string, unknown>>

/** What JSON calls an object: no list, and not null. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
