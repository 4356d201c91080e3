/**
 * Where a reader of changes stands. A transaction is known by its number, which PostgreSQL gives in the order of
 * beginnings; they become visible in another order. So a reader keeps a snapshot of PostgreSQL: what it has read is what
 * is visible in it (docs/adr/0067-events-follow-what-is-visible.md).
 */

/** As `pg_current_snapshot()` writes it: `min:max:open,open`. */
export type Snapshot = {
  /** All before it were over. */
  readonly min: bigint
  /** None from here on had begun. */
  readonly max: bigint
  /** Those in between that were not over. */
  readonly open: ReadonlySet<bigint>
}

/** @throws {SyntaxError} for another text */
export function parseSnapshot(text: string): Snapshot {
  const [min = '', max = '', open = ''] = text.split(':')
  return { min: BigInt(min), max: BigInt(max), open: new Set(open.split(',').filter(Boolean).map(BigInt)) }
}

/** In which exactly the transactions before this one are visible. */
export const before = (transaction: bigint): Snapshot => ({ min: transaction, max: transaction, open: new Set() })

/** Whether what a transaction wrote is visible, if it was committed. */
export const isVisible = ({ max, open }: Snapshot, transaction: bigint): boolean =>
  transaction < max && !open.has(transaction)

/** What a reader has seen that stood at `from`, and has read the transactions up to `last` in a later snapshot. */
export function advanced(from: Snapshot, to: Snapshot, last: bigint): Snapshot {
  const next = last + 1n < to.max ? last + 1n : to.max
  const max = next > from.max ? next : from.max
  const open = [...[...to.open].filter((each) => each <= last), ...[...from.open].filter((each) => each > last)]
  return { min: open.reduce((least, each) => (each < least ? each : least), max), max, open: new Set(open) }
}
