import { PrismaPg } from '@prisma/adapter-pg'
import type { Transaction } from '@prisma/driver-adapter-utils'

/**
 * Prisma's adapter, with two fixes. After a failed statement, PostgreSQL answers COMMIT with ROLLBACK and no error, and the
 * adapter takes that for a commit. And the adapter returns a connection that is lost while committing to the pool before the pool
 * notices the loss.
 */
export class Adapter extends PrismaPg {
  override async connect(): ReturnType<PrismaPg['connect']> {
    const adapter = await super.connect()
    const start = adapter.startTransaction.bind(adapter)
    adapter.startTransaction = async (isolationLevel) => refusingFailed(await start(isolationLevel))
    return adapter
  }
}

function refusingFailed(tx: Transaction): Transaction {
  let hasFailed = false
  const noting = <Result>(answer: Promise<Result>): Promise<Result> =>
    answer.catch((error: unknown) => {
      hasFailed = true
      throw error
    })
  const { queryRaw, executeRaw } = tx
  tx.queryRaw = (query) => noting(queryRaw.call(tx, query))
  tx.executeRaw = async (query) => {
    if (query.sql !== 'COMMIT') {
      const count = await noting(executeRaw.call(tx, query))
      // PostgreSQL accepts this only in a transaction that goes on behind it.
      if (query.sql.startsWith('ROLLBACK TO SAVEPOINT ')) hasFailed = false
      return count
    }
    try {
      if (hasFailed) throw new Error('the transaction ended in ROLLBACK')
      return await executeRaw.call(tx, query)
    } catch (error) {
      // The connection returns to the pool: it must be outside of the transaction, or known to be lost.
      await executeRaw.call(tx, { ...query, sql: 'ROLLBACK' }).catch(() => {})
      throw error
    }
  }
  return tx
}
