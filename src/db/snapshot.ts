import { type Db, type Tx, transaction } from './client.ts'

/** A part of an answer: it is read in a few short statements, in whatever transaction it is given. */
export type Portion<Result> = (tx: Tx) => Promise<Result>

/** What reads the portions of an answer. */
export type Source = {
  /** @throws {Problem} `unavailable` when the database is away */
  read<Result>(portion: Portion<Result>): Promise<Result>
  /** From now on, no transaction is open between two portions: their reader may wait for a client. */
  end(): Promise<void>
}

/** Of a transaction that goes on: its reader waits for no client. */
export const within = (tx: Tx): Source => ({ read: (portion) => portion(tx), end: async () => {} })

/** Each portion in a transaction of its own. */
export const separately = (db: Db): Source => ({
  read: (portion) => transaction(db, portion, { isolationLevel: 'RepeatableRead' }),
  end: async () => {},
})

/**
 * Reads portions of one snapshot until `end`, and each of its own afterwards
 * (docs/adr/0086-a-slow-reader-holds-no-transaction.md).
 *
 * @param plans as of `transaction`
 * @throws what `work` throws; {Problem} `unavailable` when the database is away
 */
export async function withSnapshot<Result>(
  db: Db,
  work: (source: Source) => Promise<Result>,
  { plans }: { readonly plans?: 'auto' } = {},
): Promise<Result> {
  const options = { isolationLevel: 'RepeatableRead', ...(plans !== undefined && { plans }) } as const
  const [begun, over] = [Promise.withResolvers<Tx>(), Promise.withResolvers<void>()]
  const untilOver = (tx: Tx) => {
    begun.resolve(tx)
    return over.promise
  }
  const done = transaction(db, untilOver, options)
  // Of a transaction that does not begin, `read` reports the failure; `end` reports the others.
  done.catch(begun.reject)
  for (const { promise } of [begun, over]) promise.catch(() => {})
  let isOpen = true
  const end = async () => {
    isOpen = false
    over.resolve()
    await done
  }
  const read = async <Part>(portion: Portion<Part>): Promise<Part> =>
    isOpen ? portion(await begun.promise) : transaction(db, portion, options)
  try {
    const result = await work({ read, end })
    await end()
    return result
  } catch (error) {
    // It rolls back, and gives the error its words.
    over.reject(error)
    await done
    throw error
  }
}
