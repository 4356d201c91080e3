import { Problem } from './errors.ts'

/** A start that cannot go on, for a reason that the operator can mend: one sentence, no stack. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** The reason in the operating system's word: `EACCES`; else the message. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

/** Shows what happens and how long it takes, while it happens. */
export type Report = <Result>(what: string, work: () => Promise<Result>) => Promise<Result>

/** Errors that were written for the operator, by name, because some come from layers above this one. */
const written = ['ConfigError', 'MigrationError', 'StartError']

/** For what the operator can mend one sentence; for the rest, which are bugs, the whole story. */
export function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (written.includes(error.name)) return error.message
  if (error instanceof Problem)
    return error.cause === undefined ? error.message : `${error.message} (${reasonOf(error.cause)})`
  // PostgreSQL refuses a login: classes 28 and 3D.
  if (/^(28|3D)/.test(reasonOf(error))) return `The database of DATABASE_URL refuses: ${error.message}.`
  return error.stack ?? error.message
}

/** Runs a program; when it cannot go on, it says why and ends with code 1. */
export async function runProgram(main: () => Promise<void>): Promise<void> {
  try {
    await main()
  } catch (error) {
    process.stderr.write(`${sentence(error)}\n`)
    process.exit(1)
  }
}
