/** All settings, from the environment. */

const { env } = process

/** Where Gatewright is, and the token of this consumer there. */
export const gatewright = { url: env.GATEWRIGHT_URL ?? 'http://127.0.0.1:9000', token: env.GATEWRIGHT_TOKEN ?? '' }

const port = Number(env.PORT ?? 9_400)
/** The sign-in server. `ISSUER` is its public address: a proxy with TLS in front of it. */
export const signIn = { port, issuer: env.ISSUER ?? `http://127.0.0.1:${port}` }

/** The small application. A pipeline gives it the secret. */
export const application = {
  port: Number(env.APP_PORT ?? 9_500),
  clientId: env.CLIENT_ID ?? 'hello',
  clientSecret: env.CLIENT_SECRET ?? '',
}
