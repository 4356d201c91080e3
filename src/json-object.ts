export type JsonObject = Readonly<Record<string, unknown>>

/** What JSON calls an object: no list, and not null. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What stands under a name that people chose: `constructor` is one, and says nothing by itself. */
export const own = <Value>(values: Readonly<Record<string, Value>>, name: string | undefined): Value | undefined =>
  name !== undefined && Object.hasOwn(values, name) ? values[name] : undefined
