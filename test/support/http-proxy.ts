import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { atEnd } from './at-end.ts'

export type HttpProxyServer = {
  /** `http://127.0.0.1:3128` */
  readonly url: string
  /** Each CONNECT that it got: `gatewright.test:443`. */
  readonly asked: readonly string[]
}

/**
 * An HTTP proxy, as companies have them. Every name is this machine.
 *
 * @param login `user:password` that it wants @param refuses the status with which it refuses all
 */
export async function httpProxy({
  login,
  refuses,
}: {
  login?: string
  refuses?: number
} = {}): Promise<HttpProxyServer> {
  const asked: string[] = []
  const server = createServer((_, reply) => reply.writeHead(400).end('This is a proxy for CONNECT.'))
  server.on('connect', ({ url = '', headers }, client) => {
    asked.push(url)
    const isKnown =
      login === undefined || headers['proxy-authorization'] === `Basic ${Buffer.from(login).toString('base64')}`
    const status = refuses ?? (isKnown ? 200 : 407)
    client.on('error', () => client.destroy())
    if (status !== 200) return void client.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\n\r\n`)
    const service = connect(Number(new URL(`http://${url}`).port), '127.0.0.1')
    for (const socket of [client, service])
      for (const end of ['error', 'close'])
        socket.on(end, () => {
          client.destroy()
          service.destroy()
        })
    service.on('connect', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      service.pipe(client).pipe(service)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy got no port')
  return { url: `http://127.0.0.1:${address.port}`, asked }
}
