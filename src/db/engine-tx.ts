import type { z } from 'zod'
import { type Db, type Tx, transaction } from './client.ts'
import { failureCode } from './errors.ts'
import { execute, query, type Statement } from './raw.ts'

/** Reads of the engine, whose statements are made from model declarations. */
export interface EngineReader {
  /** @returns the rows; the first is checked against `row` */
  query<Row>(row: z.ZodType<Row>, statement: Statement): Promise<Row[]>
}

/** One open transaction of the engine. It is implemented by Prisma here, and by `pipeline.ts`. */
export interface EngineTx extends EngineReader {
  /**
   * Sends a statement without waiting for it. The transaction fails if it fails.
   *
   * @param explain turns its failure into the error for the caller
   */
  send(statement: Statement, explain?: (error: unknown) => unknown): void
}

/**
 * Runs `work` in one transaction and commits it, as `transaction` in `client.ts` does.
 *
 * @param behind sent behind the commit, outside of the transaction. Nothing waits for it, and it may get lost
 */
export type EngineTransaction = <Result>(work: (tx: EngineTx) => Promise<Result>, behind?: Statement) => Promise<Result>

/** Reads for the engine through Prisma, without a transaction of their own. */
export const reader = (db: Db | Tx): EngineReader => ({ query: (row, statement) => query(db, row, statement) })

/** Transactions for the engine through Prisma. */
export const prismaTransaction =
  (db: Db): EngineTransaction =>
  async (work, behind) => {
    const result = await transaction(db, (tx) => withEngine(tx, work))
    if (behind !== undefined) execute(db, behind).catch(() => {})
    return result
  }

/** Lets the engine work in a transaction of Prisma. @returns when all statements that it sent are done */
export async function withEngine<Result>(tx: Tx, work: (engine: EngineTx) => Promise<Result>): Promise<Result> {
  const sent: Promise<unknown>[] = []
  const inTurn = oneByOne()
  const settled = () => Promise.all(sent)
  try {
    const result = await work({
      query: (row, statement) => inTurn(() => query(tx, row, statement)),
      send: (statement, explain = (error) => error) =>
        void sent.push(
          explained(
            inTurn(() => execute(tx, statement)),
            explain,
          ),
        ),
    })
    await settled()
    return result
  } catch (error) {
    throw await firstFailure(error, settled)
  }
}

/**
 * Runs statements one after the other. Prisma batches simultaneous statements of one transaction, and when one of a
 * batch fails, others return undefined instead of rows.
 */
function oneByOne(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work, work)
    last = next
    return next
  }
}

/** Explains a failure, and keeps it from being an unhandled rejection: the end of the transaction reports it. */
export function explained(answer: Promise<unknown>, explain: (error: unknown) => unknown): Promise<unknown> {
  const result = answer.catch((error: unknown) => Promise.reject(explain(error)))
  result.catch(() => {})
  return result
}

/** A statement fails with 25P02 because an earlier one failed: the error of the earlier one is the reason. */
export function firstFailure(error: unknown, settled: () => Promise<unknown>): Promise<unknown> {
  if (failureCode(error) !== '25P02') return Promise.resolve(error)
  return settled().then(
    () => error,
    (first: unknown) => first,
  )
}
