import { createServer } from 'node:net'
import { reasonOf, StartError } from '../start-error.ts'

/** Finds out early, before anything is made or started. @throws {StartError} when the API cannot listen there */
export async function checkPort(port: number, host: string): Promise<void> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  } catch (error) {
    throw portError(port, host, error)
  }
  await new Promise((resolve) => server.close(resolve))
}

export function portError(port: number, host: string, error: unknown): StartError {
  const code = reasonOf(error)
  const sentences: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is taken by another program: stop that one, or choose another port with PORT=<number>.`,
    EACCES: `Port ${port} on ${host} is not for this user: choose one above 1023 with PORT=<number>.`,
    EADDRNOTAVAIL: `HOST ${host} is not an address of this machine.`,
    ENOTFOUND: `HOST ${host} is not known to this machine.`,
  }
  return new StartError(sentences[code] ?? `Port ${port} on ${host} cannot be listened on (${code}).`, { cause: error })
}
