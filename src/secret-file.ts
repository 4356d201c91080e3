import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { reasonOf, StartError } from './start-error.ts'

type Rules = {
  readonly minLength: number
  /** What the operator does about a damaged file: `put the right one back from a backup`. */
  readonly remedy: string
}

/**
 * Reads a secret from a file that only its owner may read. Generates it when there is no file. The file gets its name after it is
 * complete, so an empty or short file was damaged later.
 *
 * @throws {StartError} when the file is damaged, or cannot be read or written. A damaged file stays as it is
 */
export function readOrCreateSecret(
  file: string,
  generate: () => string,
  { minLength, remedy }: Rules = { minLength: 1, remedy: 'put the right one back from a backup' },
): string {
  if (!existsSync(file)) explained(`${file} cannot be written`, () => create(file, generate()))
  const secret = explained(`${file} cannot be read`, () => readFileSync(file, 'utf8')).trim()
  if (secret === '') throw new StartError(`${file} is empty; ${remedy}.`)
  if (secret.length < minLength)
    throw new StartError(`${file} holds ${secret.length} characters, and it takes ${minLength} or more; ${remedy}.`)
  return secret
}

function create(file: string, secret: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const unfinished = `${file}.half`
  writeFileSync(unfinished, `${secret}\n`, { mode: 0o600, flush: true })
  renameSync(unfinished, file)
}

function explained<Result>(failure: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    const why =
      reasonOf(error) === 'EACCES' ? `user ${process.getuid?.()} may not; give it to that user` : reasonOf(error)
    throw new StartError(`${failure} (${why}).`, { cause: error })
  }
}
