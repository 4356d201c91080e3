import { createServer } from 'node:net'
import type { Config } from '../config.ts'
import { reasonOf, StartError } from '../start-error.ts'

type Ports = Pick<Config, 'port' | 'metricsPort' | 'host'>

/** Checks the ports before anything is made or started. @throws {StartError} when the API cannot listen there */
export async function checkPorts({ port, metricsPort, host }: Ports): Promise<void> {
  await checkPort(port, host, 'PORT')
  if (metricsPort !== null) await checkPort(metricsPort, host, 'METRICS_PORT')
}

async function checkPort(port: number, host: string, setting: string): Promise<void> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  } catch (error) {
    throw portError(port, host, error, setting)
  }
  await new Promise((resolve) => server.close(resolve))
}

export function portError(port: number, host: string, error: unknown, setting = 'PORT'): StartError {
  const code = reasonOf(error)
  const sentences: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is taken by another program: stop that one, or choose another port with ${setting}=<number>.`,
    EACCES: `Port ${port} on ${host} is not for this user: choose one above 1023 with ${setting}=<number>.`,
    EADDRNOTAVAIL: `HOST ${host} is not an address of this machine.`,
    ENOTFOUND: `HOST ${host} is not known to this machine.`,
  }
  return new StartError(sentences[code] ?? `Port ${port} on ${host} cannot be listened on (${code}).`, { cause: error })
}
