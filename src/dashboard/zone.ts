/** The times of pages: in UTC, or in the zone that the operator chose. */

export const utc = 'UTC'

/** The zones that can be chosen, by the names of the IANA database. */
export const zones: readonly string[] = [utc, ...Intl.supportedValuesOf('timeZone').filter((name) => name !== utc)]

/** @returns the name under which it is listed, also for an older one; undefined for a text that is no zone */
export function zoneOf(name: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat('sv', { timeZone: name }).resolvedOptions()
    return zones.includes(timeZone) ? timeZone : undefined
  } catch {
    return undefined
  }
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** `2026-11-23 09:15:04 CET`: the same zone has another name in summer. Sweden writes times as ISO 8601 does. */
export const written = (at: Date, timeZone: string): string =>
  formats
    .getOrInsertComputed(
      timeZone,
      () => new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'long' }),
    )
    .format(at)
