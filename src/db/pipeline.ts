import type pg from 'pg'
import type { z } from 'zod'
import { CommitUnknown } from './client.ts'
import { type EngineTransaction, engineTx } from './engine-tx.ts'
import { databaseProblem, isConnectionLost, throwProblem } from './errors.ts'
import { checked, type Statement, statementName } from './raw.ts'

/**
 * Transactions for the engine that send statements without waiting for earlier answers, on the pool of Prisma's adapter.
 * One line of `workers/blueprint.ts` chooses it. docs/adr/0026-the-worker-pipelines.md has the gain, and how to delete it.
 */
export const pipelinedTransaction =
  (pool: pg.Pool): EngineTransaction =>
  async (work, behind) => {
    const client = await pool.connect().catch(throwProblem)
    let broken: Error | undefined
    const onError = (error: Error) => {
      broken = error
    }
    client.on('error', onError)
    const { tx, settled, reasonOf } = engineTx({
      query: async <Row>(row: z.ZodType<Row>, statement: Statement) => checked(row, await send<Row>(client, statement)),
      execute: (statement) => send(client, statement),
    })
    try {
      tx.send({ text: 'BEGIN', values: [] })
      const result = await work(tx)
      await commit(client, settled(), behind)
      return result
    } catch (failure) {
      const error = await reasonOf(failure)
      if (error instanceof CommitUnknown || isConnectionLost(error)) broken ??= error as Error
      if (broken === undefined) await client.query('ROLLBACK').catch(onError)
      throw error instanceof CommitUnknown ? error : databaseProblem(error)
    } finally {
      client.off('error', onError)
      client.release(broken ?? false)
    }
  }

/** The name puts it into the packet of others: the driver sends a statement without a name at once, by itself. */
async function send<Row>(client: pg.PoolClient, { text, values }: Statement): Promise<Row[]> {
  const { rows } = await client.query({ name: statementName(text), text, values: [...values] })
  return rows as Row[]
}

/**
 * @param sent fails when a statement failed that was sent without waiting; PostgreSQL then answers COMMIT with ROLLBACK
 * @param behind a statement in the same packet as COMMIT
 */
async function commit(client: pg.PoolClient, sent: Promise<unknown>, behind: Statement | undefined): Promise<void> {
  try {
    const committing = client.query('COMMIT')
    if (behind !== undefined) send(client, behind).catch(() => {})
    const [{ command }] = await Promise.all([committing, sent])
    if (command !== 'COMMIT') throw new Error(`the transaction ended in ${command}`)
  } catch (error) {
    if (isConnectionLost(error)) throw new CommitUnknown('connection lost while committing', { cause: error })
    throw error
  }
}
