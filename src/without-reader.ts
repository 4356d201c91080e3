import { fstatSync } from 'node:fs'

/** What a program does when the reader of its output closes it, as in `gatewright apply --each DIR | head -1`. */

/** The program goes on with its work, prints nothing more there, and ends with the code of its work. */
export function goOnWithoutReader(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error) => {
      if (!isOfReader(error)) throw error
    })
}

/** The program ends: its only work is to print. @param code its exit code then */
export function endWithoutReader(code: () => number): void {
  const end = (error: Error) => {
    if (isOfReader(error)) process.exit(code())
  }
  process.stdout.on('error', end)
  if (isOnePipe()) process.stderr.on('error', end)
}

/** Whether an error is of a pipe that its reader has closed. */
export const isOfReader = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EPIPE'

/** Whether both outputs are one pipe (`2>&1`): a program that waits may print on standard error alone, until it ends. */
function isOnePipe(): boolean {
  const [out, errors] = [fstatSync(process.stdout.fd), fstatSync(process.stderr.fd)]
  return out.dev === errors.dev && out.ino === errors.ino
}
