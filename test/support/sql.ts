import type { Db, Tx } from '../../src/db/client.ts'
import { Prisma } from '../../src/db/generated/client.ts'

/** Reads of tests beside Prisma's models: `await rows(db, sql`SELECT ...`)`. */

export const { sql, raw } = Prisma

/** Counts come as numbers: what a test counts is far below 2^53. */
export async function rows<Row>(db: Db | Tx, statement: Prisma.Sql): Promise<Row[]> {
  const found = await db.$queryRaw<Record<string, unknown>[]>(statement)
  const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value)
  return found.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])) as Row)
}

/** The same as `rows`, for statements whose columns cannot be read, and those that have none. */
export const execute = (db: Db | Tx, statement: Prisma.Sql): Promise<number> => db.$executeRaw(statement)
