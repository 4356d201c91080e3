import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { reasonOf, StartError } from './start-error.ts'

/** What a kept secret must be. */
type Limits = {
  /** Characters. */
  readonly atLeast: number
  /** What to do about one that is not: `put the right one back from a backup`. */
  readonly remedy: string
}

/**
 * A secret that lives in a file which only its owner may read: read from there, or made and put there. The file is
 * whole from the moment it exists, so that one which is empty or short was damaged by somebody else.
 *
 * @throws {StartError} for a file that was damaged, which stays as it is; for one that cannot be read or written
 */
export function keepSecret(
  file: string,
  make: () => string,
  { atLeast, remedy }: Limits = { atLeast: 1, remedy: 'put the right one back from a backup' },
): string {
  if (!existsSync(file)) orSay(`${file} cannot be written`, () => write(file, make()))
  const secret = orSay(`${file} cannot be read`, () => readFileSync(file, 'utf8')).trim()
  if (secret === '') throw new StartError(`${file} is empty; ${remedy}.`)
  if (secret.length < atLeast)
    throw new StartError(`${file} holds ${secret.length} characters, and it takes ${atLeast} or more; ${remedy}.`)
  return secret
}

function write(file: string, secret: string): void {
  const half = `${file}.half`
  writeFileSync(half, `${secret}\n`, { mode: 0o600, flush: true })
  renameSync(half, file)
}

function orSay<Result>(what: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw new StartError(`${what} (${reasonOf(error)}).`, { cause: error })
  }
}
