import { fstatSync } from 'node:fs'

/** What a program does when the reader of its output leaves, as that of `gatewright apply --each DIR | head -1` does. */

/** From here on, it goes on with its work, prints nothing more there, and ends with the code of its work. */
export function goOnWithoutReader(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error) => {
      if (!isOfReader(error)) throw error
    })
}

/** Where to print is all of the work, it ends. @param code its exit code then */
export function endWithoutReader(code: () => number): void {
  const end = (error: Error) => {
    if (isOfReader(error)) process.exit(code())
  }
  process.stdout.on('error', end)
  if (isOnePipe()) process.stderr.on('error', end)
}

/** Of a pipe whose reader has left. */
export const isOfReader = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EPIPE'

/** `2>&1`: what waits may print on standard error alone, until it ends. */
function isOnePipe(): boolean {
  const [out, errors] = [fstatSync(process.stdout.fd), fstatSync(process.stderr.fd)]
  return out.dev === errors.dev && out.ino === errors.ino
}
