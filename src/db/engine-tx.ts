import type { z } from 'zod'
import { limitTime } from '../time-limit.ts'
import { type Db, type Tx, transaction } from './client.ts'
import { failureCode } from './errors.ts'
import { execute, query, type Statement } from './raw.ts'

/** Reads of the engine, whose statements are made from model declarations. */
export interface EngineReader {
  /** @returns the rows; the first is checked against `row` */
  query<Row>(row: z.ZodType<Row>, statement: Statement): Promise<Row[]>
  /**
   * Reads a part that an answer can do without, under settings and a time-out of its own. Neither reaches the statements behind
   * it.
   *
   * @returns null when it takes too long
   */
  attempt<Row>(row: z.ZodType<Row>, statement: Statement, limits: AttemptLimits): Promise<Row[] | null>
}

/** @property settings a statement that sets some for the transaction, by `set_config` */
type AttemptLimits = { readonly withinMs: number; readonly settings: Statement }

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
 * @param behind a statement that is sent behind the commit, outside of the transaction. Nothing waits for it, and it may get lost
 */
export type EngineTransaction = <Result>(work: (tx: EngineTx) => Promise<Result>, behind?: Statement) => Promise<Result>

/** Reads for the engine through Prisma, without a transaction of their own. */
export const reader = (db: Db): EngineReader => ({
  query: (row, statement) => query(db, row, statement),
  attempt: (row, statement, limits) => {
    const read = transaction(db, (tx) => withEngine(tx, (engine) => engine.attempt(row, statement, limits)))
    // A connection that is not free in time counts, too.
    return limitTime(read, limits.withinMs, () => null)
  },
})

type Statements = {
  readonly query: EngineTx['query']
  readonly execute: (statement: Statement) => Promise<unknown>
}

/**
 * An open transaction for the engine.
 *
 * @returns `settled` waits for all statements that were sent, and fails when one of them did; `reasonOf` names the failure behind
 * an error
 */
export function engineTx({ query, execute }: Statements) {
  const sent: Promise<unknown>[] = []
  const settled = () => Promise.all(sent)
  const send: EngineTx['send'] = (statement, explain = (error) => error) => {
    const answer = execute(statement).catch((error: unknown) => Promise.reject(explain(error)))
    // The end of the transaction reports it.
    answer.catch(() => {})
    sent.push(answer)
  }
  // A savepoint takes back the settings, and a failure.
  const attempt: EngineTx['attempt'] = async (row, statement, { withinMs, settings }) => {
    send({ text: 'SAVEPOINT attempt', values: [] })
    send({ text: `SELECT set_config('statement_timeout', $1, true)`, values: [String(Math.ceil(withinMs))] })
    send(settings)
    try {
      return await query(row, statement)
    } catch (error) {
      if (failureCode(error) !== '57014') throw error
      return null
    } finally {
      send({ text: 'ROLLBACK TO SAVEPOINT attempt', values: [] })
      send({ text: 'RELEASE SAVEPOINT attempt', values: [] })
    }
  }
  // A statement fails with 25P02 because an earlier one failed.
  const reasonOf = async (error: unknown): Promise<unknown> =>
    failureCode(error) === '25P02'
      ? settled().then(
          () => error,
          (first: unknown) => first,
        )
      : error
  return { tx: { query, send, attempt }, settled, reasonOf }
}

export const prismaTransaction =
  (db: Db): EngineTransaction =>
  async (work, behind) => {
    const result = await transaction(db, (tx) => withEngine(tx, work))
    if (behind !== undefined) execute(db, behind).catch(() => {})
    return result
  }

/** Lets the engine work in a transaction of Prisma. @returns when all statements that it sent are done */
export async function withEngine<Result>(prisma: Tx, work: (engine: EngineTx) => Promise<Result>): Promise<Result> {
  const inTurn = oneByOne()
  const { tx, settled, reasonOf } = engineTx({
    query: (row, statement) => inTurn(() => query(prisma, row, statement)),
    execute: (statement) => inTurn(() => execute(prisma, statement)),
  })
  try {
    const result = await work(tx)
    await settled()
    return result
  } catch (error) {
    throw await reasonOf(error)
  }
}

/**
 * Runs statements one after the other. Prisma batches simultaneous statements of one transaction, and when one of a batch fails,
 * others return undefined instead of rows.
 */
function oneByOne(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work, work)
    last = next
    return next
  }
}
