import { Problem } from './errors.ts'
import { withoutPasswords } from './hidden.ts'
import { goOnWithoutReader } from './without-reader.ts'

/** The program cannot start or continue, and the operator can fix it. The message is printed without a stack. */
export class StartError extends Error {
  override readonly name: string = 'StartError'
}

/** The operating system's code, such as `EACCES`, or else the message. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

/** Shows which step is running, and then how long it took. */
export type Report = <Result>(step: string, work: () => Promise<Result>) => Promise<Result>

/**
 * Makes one sentence of an error that the operator can fix; message and stack of a bug.
 *
 * @param database its name in the sentence about a refused login
 */
export function sentence(error: unknown, database = 'The database of DATABASE_URL'): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof StartError) return error.message
  if (error instanceof Problem)
    return error.cause === undefined ? error.message : `${error.message} (${reasonOf(error.cause)})`
  // PostgreSQL refuses the login: SQLSTATE classes 28 and 3D.
  if (/^(28|3D)/.test(reasonOf(error))) return `${database} refuses: ${error.message}.`
  return error.stack ?? error.message
}

/** Runs a program. An error ends it with exit code 1 and a sentence. @param usage what `--help` prints instead */
export async function runProgram(main: () => Promise<void>, usage?: string): Promise<void> {
  goOnWithoutReader()
  if (usage !== undefined && process.argv.slice(2).some((arg) => arg === '--help' || arg === '-h')) {
    process.stdout.write(usage)
    return
  }
  try {
    await main()
  } catch (error) {
    process.stderr.write(`${withoutPasswords(sentence(error))}\n`)
    process.exit(1)
  }
}
