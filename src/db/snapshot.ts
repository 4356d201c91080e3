import { type Db, type Tx, transaction } from './client.ts'

/** A part of an answer: it is read in a few short statements, in any transaction. */
export type Portion<Result> = (tx: Tx) => Promise<Result>

/** Reads the portions of an answer. */
export type Source = {
  /** @throws {Problem} `unavailable` when the database is away */
  read<Result>(portion: Portion<Result>): Promise<Result>
  /** Ends the transaction between portions: their reader may wait for a client now. */
  end(): Promise<void>
  /** Rolls the transaction back. @throws the error, or the {Problem} that it is */
  fail(error: unknown): Promise<never>
}

const endless = { end: async () => {}, fail: (error: unknown) => Promise.reject(error) }

/** Reads in a transaction that goes on: its reader waits for no client. */
export const within = (tx: Tx): Source => ({ read: (portion) => portion(tx), ...endless })

/** Reads each portion in a transaction of its own. */
export const separately = (db: Db): Source => ({
  read: (portion) => transaction(db, portion, { isolationLevel: 'RepeatableRead' }),
  ...endless,
})

/**
 * Reads portions of one snapshot until `end`, and each of its own afterwards
 * (docs/adr/0086-a-slow-reader-holds-no-transaction.md). Its reader ends it, or lets it fail.
 *
 * @param plans see `transaction`
 */
export function openSnapshot(db: Db, { plans }: { readonly plans?: 'auto' } = {}): Source {
  const options = { isolationLevel: 'RepeatableRead', ...(plans !== undefined && { plans }) } as const
  const [begun, over] = [Promise.withResolvers<Tx>(), Promise.withResolvers<void>()]
  const untilOver = (tx: Tx) => {
    begun.resolve(tx)
    return over.promise
  }
  const done = transaction(db, untilOver, options)
  // `read` reports that a transaction does not begin; `end` reports other failures.
  done.catch(begun.reject)
  for (const { promise } of [begun, over]) promise.catch(() => {})
  let isOpen = true
  return {
    read: async (portion) => (isOpen ? portion(await begun.promise) : transaction(db, portion, options)),
    end: async () => {
      isOpen = false
      over.resolve()
      await done
    },
    fail: async (error) => {
      // The transaction rolls back, and turns the error into a Problem.
      over.reject(error)
      await done
      throw error
    },
  }
}
