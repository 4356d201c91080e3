import { z } from 'zod'
import { sha256 } from '../ids.ts'
import type { Prisma } from './generated/client.ts'

type Runner = Pick<Prisma.TransactionClient, '$queryRawUnsafe' | '$executeRawUnsafe'>

/**
 * A raw statement: text with `$1`, and its values. `Prisma.sql` makes one too. `test/support/tidy.ts` lists the files
 * that may write raw SQL, each with its reason.
 */
export type Statement = { readonly text: string; readonly values: readonly unknown[] }

/** The values of a statement while it is written: each becomes a placeholder. */
export class Values {
  readonly list: unknown[] = []
  readonly bind = (value: unknown): string => `$${this.list.push(value)}`
}

/**
 * Runs a raw statement and returns its rows. The first row is checked against its declaration, so that a renamed column
 * or a changed type fails at once.
 *
 * @param row the columns of one row
 * @throws the errors of Prisma; `errors.ts` classifies them
 */
export async function query<Row>(db: Runner, row: z.ZodType<Row>, { text, values }: Statement): Promise<Row[]> {
  return checked(row, await db.$queryRawUnsafe<Row[]>(text, ...values))
}

/** Runs a raw statement. @returns the number of rows that it wrote */
export const execute = (db: Runner, { text, values }: Statement): Promise<number> =>
  db.$executeRawUnsafe(text, ...values)

/** @throws {Error} with the columns that are not as declared */
export function checked<Row>(row: z.ZodType<Row>, rows: Row[]): Row[] {
  const [first] = rows
  if (first === undefined) return rows
  const { error } = row.safeParse(first)
  if (error !== undefined)
    throw new Error(`A raw statement answers other columns than declared: ${z.prettifyError(error)}`)
  return rows
}

/** Marks a statement whose text varies: it is parsed and planned each time it runs. */
export const unprepared = ({ text, values }: Statement): Statement => ({ text: `${unpreparedMark}${text}`, values })
const unpreparedMark = '/* unprepared */ '

const names = new Map<string, string>()
/** The limit of the cache: filters can make many texts. */
const maxNames = 2_000

/**
 * The name under which a connection prepares a statement for good: the digest of its text.
 *
 * @returns '', which prepares nothing, for texts that vary: marked ones, and Prisma's lists of keys, which have a placeholder for
 * each key
 */
export function statementName(text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  if (names.size >= maxNames) names.clear()
  const isVarying = text.startsWith(unpreparedMark) || /\(\$\d+,\$\d+/.test(text)
  const name = isVarying ? '' : sha256(text).toString('base64url').slice(0, 22)
  names.set(text, name)
  return name
}
