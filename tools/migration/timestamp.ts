/**
 * What the name of a new migration begins with: the time, as `20261129120101`. It is later than that of the last one, which
 * may lie in the future: the new one builds on all others.
 *
 * @param last the name of the last migration
 */
export function timestampAfter(last: string, now: Date): string {
  const parts = last.replace(/^(....)(..)(..)(..)(..)(..).*$/, '$1-$2-$3T$4:$5:$6Z')
  const time = new Date(Math.max(now.getTime(), Date.parse(parts) + 1000))
  return time.toISOString().replaceAll(/\D/g, '').slice(0, 14)
}
