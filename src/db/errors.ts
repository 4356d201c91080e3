import { z } from 'zod'
import { Problem } from '../errors.ts'

/** The failure as the driver adapter reports it. */
const adapterFailure = z.object({
  cause: z.object({
    kind: z.string(),
    originalCode: z.string().optional(),
    constraint: z.object({ index: z.string() }).optional().catch(undefined),
  }),
})

/** Prisma's error around that failure. Its own `P....` codes are less exact. */
const prismaFailure = z.object({ meta: z.object({ driverAdapterError: adapterFailure }) })

/** COMMIT fails with the adapter's error, other statements with Prisma's. */
const beneathPrisma = (error: Error) =>
  (prismaFailure.safeParse(error).data?.meta.driverAdapterError ?? adapterFailure.safeParse(error).data)?.cause

/** The adapter reports broken sockets by kind, without a code. */
const socketKinds: Readonly<Record<string, string>> = {
  DatabaseNotReachable: '08001',
  ConnectionClosed: '08006',
  SocketTimeout: '08006',
}

/** The code of a failure: SQLSTATE of PostgreSQL, Prisma's code, or the operating system's code of a broken socket. */
export function failureCode(error: unknown): string | undefined {
  if (error instanceof Problem) return failureCode(error.cause)
  if (!(error instanceof Error)) return undefined
  const beneath = beneathPrisma(error)
  if (beneath !== undefined) return beneath.originalCode ?? socketKinds[beneath.kind]
  if ('code' in error && typeof error.code === 'string') return isOfFile(error) ? undefined : error.code
  return failureCode(error.cause)
}

/** Files and sockets have the same codes, such as ENOENT. The system call says which of them failed. */
const isOfFile = (error: object): boolean =>
  'syscall' in error && !['connect', 'read', 'write', 'shutdown', 'getaddrinfo'].includes(String(error.syscall))

/** There was no connection. EAGAIN: too many clients wait at a Unix socket: the server has frozen, or is overloaded. */
const neverConnected = new Set([
  ...['ECONNREFUSED', 'EAGAIN', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', '08001', '57P03', '53300'],
  // Prisma's codes: no connection in time, and a transaction that could not begin or took too long.
  ...['P1001', 'P2024', 'P2028'],
])

/** The connection was lost, or there was none. Prisma's codes: no answer in time, and a closed connection. */
const noConnection = new Set([...neverConnected, 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'P1002', 'P1008', 'P1017'])

/** Texts of errors that pg throws without a code. */
const lostTexts = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Client has encountered a connection error',
  'timeout expired',
  // The server did not answer in time. The statement may still take effect.
  'Query read timeout',
]

/** Whether there is no connection: class 08, 57P0x (shutdown, crash, starting up), 53300, or a socket error. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof Problem) return error.code === 'unavailable'
  const code = failureCode(error)
  if (code !== undefined) return noConnection.has(code) || /^(08|57P0|53300|25P03|25P04)/.test(code)
  if (!(error instanceof Error)) return false
  return lostTexts.some((text) => error.message.includes(text)) || isConnectionLost(error.cause)
}

export const isLockTimeout = (error: unknown): boolean => failureCode(error) === '55P03'

/** A lock timed out (55P03), or a statement (57014). */
export const isBusy = (error: unknown): boolean => ['55P03', '57014'].includes(failureCode(error) ?? '')

/**
 * Whether the server runs, but cannot write: it is read-only (25006), has no disk or memory left (class 53), or cannot use its
 * files (class 58). The statement had no effect.
 */
export const refusesWrites = (error: unknown): boolean => /^(25006|53(?!300)|58)/.test(failureCode(error) ?? '')

/** Whether there was no connection, or the server refused the statement: it certainly had no effect. */
export function didNotHappen(error: unknown): boolean {
  const cause = error instanceof Problem ? error.cause : error
  const code = failureCode(cause)
  if (code !== undefined) return isBusy(cause) || refusesWrites(cause) || neverConnected.has(code)
  return cause instanceof Error && cause.message.includes('timeout exceeded when trying to connect')
}

/** Whether two transactions collided, and this one was rolled back: it may be tried again. */
export const isCollision = (error: unknown): boolean => ['40001', '40P01'].includes(failureCode(error) ?? '')

/**
 * Whether another try may succeed: after a collision, a time-out, a lost connection, or with a server that cannot write for now.
 */
export const isTransient = (error: unknown): boolean =>
  isConnectionLost(error) || isCollision(error) || isBusy(error) || refusesWrites(error)

/** A violated constraint, with its name in the migration if Prisma passes it on. */
export function brokenConstraint(
  error: unknown,
): { kind: 'unique' | 'reference' | 'check'; constraint: string | undefined } | undefined {
  const kind = ({ '23505': 'unique', '23503': 'reference', '23001': 'reference', '23514': 'check' } as const)[
    failureCode(error) ?? ''
  ]
  if (kind === undefined || !(error instanceof Error)) return undefined
  const constraint = beneathPrisma(error)?.constraint?.index ?? ('constraint' in error ? error.constraint : undefined)
  return { kind, constraint: typeof constraint === 'string' ? constraint : undefined }
}

/** `databaseProblem` for work that is not tried again: a time-out is `unavailable` too. */
export const statementProblem = (error: unknown): unknown =>
  isBusy(error)
    ? new Problem('unavailable', 'The database is busy. Try again shortly.', { retryAfterS: 1, cause: error })
    : databaseProblem(error)

/** Turns an outage into a Problem. Other errors stay as they are. */
export function databaseProblem(error: unknown): unknown {
  if (error instanceof Problem) return error
  if (refusesWrites(error))
    return new Problem('unavailable', 'The database accepts no changes at the moment. Try again shortly.', {
      retryAfterS: 5,
      cause: error,
    })
  if (!isConnectionLost(error)) return error
  return new Problem('unavailable', 'The database is away. Try again shortly.', { retryAfterS: 1, cause: error })
}

/** Takes the error of an answer. @throws the {@link databaseProblem} that it is */
export function throwProblem(error: unknown): never {
  throw databaseProblem(error)
}
