import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** The system gives higher ones to connections: one of these would take the port of a server that is started again. */
const range = { from: 20_000, to: 32_000 } as const
const mostTries = 100

/** A port of 127.0.0.1 on which nothing listens. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const port = randomInt(range.from, range.to)
    if (await isFree(port)) return port
  }
  throw new Error(`no port of ${mostTries} between ${range.from} and ${range.to} is free`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  await new Promise((resolve) => server.close(resolve))
  return true
}
