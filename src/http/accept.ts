import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Node accepts one connection in each turn of its event loop. Under load a turn takes 10 ms, and the last of 500 new clients
 * waited for seconds, even for a refusal. So several sockets listen on the port, and each turn accepts one from each
 * (docs/adr/0041-many-sockets-listen-on-the-port.md).
 */
const sockets = process.platform === 'linux' ? 64 : 1

/**
 * The options of the first `listen`. The kernel lets only processes of the same user share the port; `checkPorts` refuses a
 * second Gatewright.
 */
export const listenOptions = sockets > 1 ? { reusePort: true } : {}

/** Prepares the other sockets, before the server listens. @returns a function that opens them, once it listens */
export function acceptOften(app: FastifyInstance): () => Promise<void> {
  const others: Server[] = []
  let closed: Promise<unknown> = Promise.resolve()
  // The sockets close together with the first one. Fastify closes the idle connections of all of them.
  app.addHook('preClose', async () => {
    closed = Promise.all(others.map((other) => new Promise((resolve) => other.close(resolve))))
  })
  app.addHook('onClose', async () => {
    await closed
  })
  return async () => {
    const { address, port } = app.server.address() as AddressInfo
    for (let index = 1; index < sockets; index += 1) {
      const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
        app.server.emit('connection', socket),
      )
      others.push(other)
      other.listen({ host: address, port, ...listenOptions })
      await once(other, 'listening')
    }
  }
}
