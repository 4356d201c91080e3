export type JsonObject = Readonly<Record<string, unknown>>

/** A JSON object: not an array, not null. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads a property whose name comes from a user. It ignores inherited ones, such as `constructor`. */
export const own = <Value>(values: Readonly<Record<string, Value>>, name: string | undefined): Value | undefined =>
  name !== undefined && Object.hasOwn(values, name) ? values[name] : undefined
