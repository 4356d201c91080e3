import type { Server } from 'node:http'

/** All settings, from the environment. */

const { env } = process

/** Where Gatewright is, and the token of this consumer there. */
export const gatewright = { url: env.GATEWRIGHT_URL ?? 'http://127.0.0.1:9000', token: env.GATEWRIGHT_TOKEN ?? '' }

const port = Number(env.SIGN_IN_PORT ?? 9_400)
/** The sign-in server. `ISSUER` is its public address: a proxy with TLS in front of it. */
export const signIn = { port, issuer: env.ISSUER ?? `http://127.0.0.1:${port}` }

/** The small application. A pipeline gives it the secret. */
export const application = {
  port: Number(env.APP_PORT ?? 9_500),
  clientId: env.CLIENT_ID ?? 'hello',
  clientSecret: env.CLIENT_SECRET ?? '',
}

/** Listens on the loopback. @param name that of the setting */
export function listen(server: Server, name: string, at: number, ready: string): void {
  server.once('error', ({ message }) => {
    console.error(`${message}. Set ${name} to a free port.`)
    process.exit(1)
  })
  server.listen(at, '127.0.0.1', () => console.log(ready))
}
