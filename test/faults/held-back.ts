import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from '../support/at-end.ts'

/**
 * A TCP proxy that holds back what a client says from a certain text on: the server never hears it, and the client
 * waits. Whoever is killed then is killed exactly before he said it.
 *
 * @param text what must not come through
 * @returns the proxied URL, and a promise that resolves when the text was held back
 */
export async function holdBack(target: string, text: string): Promise<{ url: string; heldBack: Promise<void> }> {
  const { hostname, port } = new URL(target)
  const { promise: heldBack, resolve } = Promise.withResolvers<void>()
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    let mute = false
    const cut = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', cut)
      socket.on('close', cut)
    }
    client.on('data', (chunk) => {
      mute ||= chunk.includes(text)
      if (mute) resolve()
      else upstream.write(chunk)
    })
    upstream.on('data', (chunk) => client.write(chunk))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((done) => server.close(done))
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy got no port')
  const url = new URL(target)
  url.port = String(address.port)
  return { url: url.href, heldBack }
}
