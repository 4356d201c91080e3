import pg from 'pg'
import { z } from 'zod'
import { Problem } from '../errors.ts'

/** What the driver adapter knew when Prisma threw: Prisma's own `P....` codes say less. */
const prismaFailure = z.object({
  meta: z.object({
    driverAdapterError: z.object({
      cause: z.object({
        kind: z.string(),
        originalCode: z.string().optional(),
        constraint: z.object({ index: z.string() }).optional().catch(undefined),
      }),
    }),
  }),
})

const beneathPrisma = (error: Error) => prismaFailure.safeParse(error).data?.meta.driverAdapterError.cause

/** The adapter names broken sockets by kind; here they get the SQLSTATE of the same meaning. */
const socketKinds: Readonly<Record<string, string>> = {
  DatabaseNotReachable: '08001',
  ConnectionClosed: '08006',
  SocketTimeout: '08006',
}

/** SQLSTATE of a PostgreSQL error, or the operating system's code of a broken socket. */
export function failureCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const beneath = beneathPrisma(error)
  if (beneath !== undefined) return beneath.originalCode ?? socketKinds[beneath.kind]
  if ('code' in error && typeof error.code === 'string') return error.code
  return failureCode(error.cause)
}

const socketCodes = new Set([
  // So many wait to be let in at a Unix socket that another cannot: the server has frozen, or is overrun.
  'EAGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
])

/** Texts of errors that pg throws without a code. */
const lostTexts = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Client has encountered a connection error',
  'timeout expired',
  // The server did not answer in time: what was sent may still happen.
  'Query read timeout',
]

/** The connection is gone, or none can be had: class 08, 57P0x (shutdown, crash, starting up), 53300, or a socket error. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof Problem) return error.code === 'unavailable'
  const code = failureCode(error)
  if (code !== undefined) return socketCodes.has(code) || /^(08|57P0|53300|25P03|25P04)/.test(code)
  if (!(error instanceof Error)) return false
  return lostTexts.some((text) => error.message.includes(text)) || isConnectionLost(error.cause)
}

/** The server was busy for too long with something else: 55P03 a lock, 57014 a statement that was ended. */
const isBusy = (error: unknown): boolean => ['55P03', '57014'].includes(failureCode(error) ?? '')

/** No connection could be had, or the server refused the statement: whatever it was, it did not happen. */
export function didNotHappen(error: unknown): boolean {
  const cause = error instanceof Problem ? error.cause : error
  const code = failureCode(cause)
  if (code !== undefined)
    return (
      isBusy(cause) ||
      ['ECONNREFUSED', 'EAGAIN', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', '57P03', '53300'].includes(code)
    )
  return cause instanceof Error && cause.message.includes('timeout exceeded when trying to connect')
}

/** Two transactions collided, and this one was ended for the other: nothing of it happened, and it may be tried again. */
export const isCollision = (error: unknown): boolean => ['40001', '40P01'].includes(failureCode(error) ?? '')

/** Another try may well succeed: serialization failure, deadlock, lock timeout, or a lost connection. */
export const isTransient = (error: unknown): boolean =>
  isConnectionLost(error) || isCollision(error) || failureCode(error) === '55P03'

/** A unique or foreign-key constraint that was broken, by its name in the migration; else undefined. */
export function brokenConstraint(
  error: unknown,
): { kind: 'unique' | 'reference' | 'check'; constraint: string } | undefined {
  const kind = ({ '23505': 'unique', '23503': 'reference', '23001': 'reference', '23514': 'check' } as const)[
    failureCode(error) ?? ''
  ]
  if (kind === undefined || !(error instanceof Error)) return undefined
  const constraint = beneathPrisma(error)?.constraint?.index ?? ('constraint' in error ? error.constraint : undefined)
  return typeof constraint === 'string' ? { kind, constraint } : undefined
}

/** A column that must hold something got nothing. */
export const isValueMissing = (error: unknown, at: { readonly table: string; readonly column: string }): boolean =>
  failureCode(error) === '23502' &&
  error instanceof pg.DatabaseError &&
  error.table === at.table &&
  error.column === at.column

/** As `databaseProblem`, for a statement by itself: there is no transaction that could try it again. */
export const lonelyProblem = (error: unknown): unknown =>
  isBusy(error)
    ? new Problem('unavailable', 'The database is busy. Try again shortly.', { retryAfterS: 1, cause: error })
    : databaseProblem(error)

/** An outage becomes a Problem; everything else stays what it is. */
export function databaseProblem(error: unknown): unknown {
  if (error instanceof Problem || !isConnectionLost(error)) return error
  return new Problem('unavailable', 'The database is away. Try again shortly.', { retryAfterS: 1, cause: error })
}
