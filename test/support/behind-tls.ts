import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { selfSigned } from '../../src/models/self-signed.ts'
import { atEnd } from './at-end.ts'
import { freshFolder } from './folder.ts'

/**
 * A service behind TLS.
 *
 * @param address of the service: `http://127.0.0.1:9000` @param name for which its certificate is
 * @returns its port, and the file of its certificate
 */
export async function behindTls(
  address: string,
  name: string,
  notBefore = new Date(),
): Promise<{ readonly port: number; readonly authority: string }> {
  const { certificate, key } = await selfSigned(name, notBefore)
  const server = createServer({ cert: certificate, key }, (client) => {
    const service = connect(Number(new URL(address).port), '127.0.0.1')
    for (const socket of [client, service]) socket.on('error', () => service.destroy())
    client.pipe(service).pipe(client)
  })
  const authority = join(freshFolder(), 'authority.pem')
  writeFileSync(authority, certificate)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(async () => void server.close())
  const listening = server.address()
  if (listening === null || typeof listening === 'string') throw new Error('the server got no port')
  return { port: listening.port, authority }
}
