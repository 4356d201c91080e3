import { sha256 } from '../ids.ts'
import { comparedName } from '../names.ts'

/** The numbers of all advisory locks. They must only differ. */
export const locks = {
  /** One process at a time bootstraps. */
  bootstrap: 7_201_455_301,
  /** One process at a time migrates. */
  migration: 7_201_455_302,
  /** One seed at a time. */
  seed: 7_201_455_304,
  /** One process at a time changes BullMQ's functions. */
  queue: 7_201_455_305,
  /** One process at a time changes the logins and their rights. */
  logins: 7_201_455_306,
} as const

/** The first numbers of pairs: the second one is a submitter, or one of the slots. */
export const pairLocks = {
  /** One set of a submitter is at work at a time. */
  sets: 72_014_551,
  /** Sets have half of the workers' slots. */
  slotsOfSets: 72_014_552,
  /** One run of a submitter may wait for locks. */
  waits: 72_014_553,
} as const

/** Serialises changes of the group tree and of rights. A trigger of the first migration takes it too. */
export const rightsLock = `'"groups"'::regclass::oid::bigint`

/** Serialises the addition of row counts of lists. A trigger of the first migration takes it too. */
export const rowCountsLock = `'"row_counts"'::regclass::oid::bigint`

/** The lock of one name, as names compare, which serialises applies of the same row. @returns a 64-bit number as text */
export const nameLock = (table: string, identifiers: readonly unknown[]): string =>
  sha256(JSON.stringify([table, identifiers.map((each) => (typeof each === 'string' ? comparedName(each) : each))]))
    .readBigInt64BE()
    .toString()
