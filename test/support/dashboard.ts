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
}

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
  return { send, logIn, session }
}
