import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import type { Installation } from './installation.ts'

export const host = '127.0.0.1:9000'
export const origin = `http://${host}`
export const login = '/admin/login/'
export const form = 'application/x-www-form-urlencoded'

/** The dashboard as a browser asks it. */
export type Dashboard = {
  send(request: InjectOptions): Promise<LightMyRequestResponse>
  logIn(token: string, headers?: Record<string, string>): Promise<LightMyRequestResponse>
  /** @returns the cookie of a new session */
  session(token: string): Promise<string>
  /** A page, for a user who is logged in. */
  get(as: User, url: string, headers?: Headers): Promise<LightMyRequestResponse>
  /** A form that a page of this origin sends, by a user who is logged in. */
  post(as: User, url: string, fields: Headers, headers?: Headers): Promise<LightMyRequestResponse>
}

type User = { readonly token: string }
type Headers = Record<string, string>

/** What a reader sees of a page. */
export const textOf = (body: string) =>
  body
    .replace(/<[^>]+>/g, ' ')
    .replaceAll('&quot;', '"')
    .replace(/\s+/g, ' ')

export function dashboardOf({ app }: Pick<Installation, 'app'>): Dashboard {
  const send: Dashboard['send'] = ({ headers, ...request }) => app.inject({ ...request, headers: { host, ...headers } })
  const logIn: Dashboard['logIn'] = (token, headers = { origin }) =>
    send({
      method: 'POST',
      url: login,
      headers: { 'content-type': form, ...headers },
      payload: new URLSearchParams({ access_token: token }).toString(),
    })
  const session = async (token: string) =>
    String((await logIn(token)).headers['set-cookie'])
      .split(';', 1)
      .join()
  const cookies = new Map<string, Promise<string>>()
  const cookieOf = ({ token }: User) => {
    const cookie = cookies.get(token) ?? session(token)
    cookies.set(token, cookie)
    return cookie
  }
  return {
    send,
    logIn,
    session,
    get: async (as, url, headers) =>
      send({ method: 'GET', url, headers: { cookie: await cookieOf(as), accept: 'text/html', ...headers } }),
    post: async (as, url, fields, headers) => {
      const sent = { cookie: await cookieOf(as), origin, accept: 'text/html', 'content-type': form, ...headers }
      return send({ method: 'POST', url, headers: sent, payload: new URLSearchParams(fields).toString() })
    },
  }
}
