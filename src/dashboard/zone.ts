/** The times of pages: in UTC, or in the zone that the operator chose. */

export const utc = 'UTC'

/** The zones that can be chosen, by the names of the IANA database. */
export const zones: readonly string[] = [utc, ...Intl.supportedValuesOf('timeZone').filter((name) => name !== utc)]

const known = new Set(zones)

/** @returns the name under which it is listed; undefined for a text that is no zone */
export function zoneOf(name: string): string | undefined {
  if (known.has(name)) return name
  try {
    // A browser may report it under an older name.
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions()
    return known.has(timeZone) ? timeZone : undefined
  } catch {
    return undefined
  }
}

/** @property offset `UTC`, `GMT+1`: the same zone has another one in summer */
export type Written = { readonly day: string; readonly clock: string; readonly offset: string }

const formats = new Map<string, Intl.DateTimeFormat>()

/** `2026-11-23`, `09:15:04` and the offset. @param zone one of `zones` */
export function written(at: Date, zone: string): Written {
  if (zone === utc) {
    const [day = '', clock = ''] = at.toISOString().slice(0, 19).split('T')
    return { day, clock, offset: utc }
  }
  const format = formats.getOrInsertComputed(zone, formatOf)
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]))
  const of = (...types: Intl.DateTimeFormatPartTypes[]) => types.map((type) => parts.get(type) ?? '')
  return {
    day: of('year', 'month', 'day').join('-'),
    clock: of('hour', 'minute', 'second').join(':'),
    offset: of('timeZoneName').join(),
  }
}

const [numeric, two] = ['numeric', '2-digit'] as const
const formatOf = (timeZone: string) =>
  new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    timeZoneName: 'shortOffset',
    year: numeric,
    month: two,
    day: two,
    hour: two,
    minute: two,
    second: two,
  })
