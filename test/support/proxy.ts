import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './at-end.ts'

export type TcpProxy = {
  /** The proxied server's URL, by way of the proxy. */
  readonly url: string
  /** Closes every connection. */
  cut(): void
  /**
   * Closes a connection when the server answers data that contains `text`: the server has done it, and the client does
   * not get the answer.
   */
  loseAnswerTo(text: string): void
  /**
   * Stops forwarding data of a client when it contains `text`: the server never gets it, and the client waits.
   *
   * @returns resolves when the client has sent it, with a function that forwards it all the same
   */
  holdBack(text: string): Promise<() => void>
  /** false: new connections are refused, by being closed at once. */
  accept(yes: boolean): void
  /** How many connections were refused. */
  turnedAway(): number
  /** true: data is held back and no connection is closed, as if the server had frozen; false: it is forwarded. */
  freeze(yes: boolean): void
  /**
   * Swallows everything on the connections of this moment, and closes none, as a firewall that forgot them. New ones
   * work.
   *
   * @returns how many of them their clients have not closed yet
   */
  silence(): () => number
}

/** A TCP proxy before a server, to lose connections at will. Closed after the test file. */
export async function proxyTo(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let losing: string | undefined
  let holding: { text: string; resolve(release: () => void): void } | undefined
  let accepting = true
  let turnedAway = 0
  let frozen = false
  const clients = new Set<Socket>()
  const silent = new Set<Socket>()

  const server = createServer((client) => {
    if (!accepting) {
      turnedAway += 1
      return void client.destroy()
    }
    const upstream = connect(Number(port), hostname)
    let lost = false
    let mute = false
    const held: Buffer[] = []
    const cutBoth = () => {
      client.destroy()
      upstream.destroy()
    }
    clients.add(client)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      // Neither end of a silent connection learns of the end of the other.
      const end = () => silent.has(client) || cutBoth()
      socket.on('error', end)
      socket.on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    client.on('close', () => {
      clients.delete(client)
      silent.delete(client)
    })
    client.on('data', (chunk: Buffer) => {
      if (silent.has(client)) return
      if (losing !== undefined && chunk.includes(losing)) {
        losing = undefined
        lost = true
      }
      if (holding !== undefined) mute ||= chunk.includes(holding.text)
      if (mute) {
        held.push(chunk)
        holding?.resolve(() => void upstream.write(Buffer.concat(held)))
      } else upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (lost) cutBoth()
      else if (!silent.has(client)) client.write(chunk)
    })
    if (frozen) for (const socket of [client, upstream]) socket.pause()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  atEnd(async () => {
    cut()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy got no port')
  const url = new URL(target)
  url.port = String(address.port)
  return {
    url: url.href,
    cut,
    loseAnswerTo: (text) => {
      losing = text
    },
    holdBack: (text) => {
      const { promise, resolve } = Promise.withResolvers<() => void>()
      holding = { text, resolve }
      return promise
    },
    accept: (yes) => {
      accepting = yes
    },
    turnedAway: () => turnedAway,
    freeze: (yes) => {
      frozen = yes
      for (const socket of sockets) yes ? socket.pause() : socket.resume()
    },
    silence: () => {
      for (const client of clients) silent.add(client)
      return () => silent.size
    },
  }
}
