import { readProxyVariables } from '../config.ts'
import { reasonOf } from '../start-error.ts'
import { UsageError } from './exit.ts'

/** The proxy of the environment, by the variables of curl: HTTPS_PROXY and NO_PROXY. Plain HTTP to this machine takes none. */

export type HttpProxy = {
  /** The URL without the login. */
  readonly url: string
  /** The value of `Proxy-Authorization`; null when HTTPS_PROXY names no user. */
  readonly login: string | null
}

/**
 * @param url that of the service @param env the environment of a test
 * @returns null when the service is reached without a proxy
 * @throws {UsageError} for a malformed proxy; its URL may hold a password, and is not repeated
 */
export function proxyFor(url: string, env?: Parameters<typeof readProxyVariables>[0]): HttpProxy | null {
  const { httpsProxy, noProxy } = readProxyVariables(env)
  const { protocol, hostname, port } = new URL(url)
  if (httpsProxy === undefined || protocol !== 'https:' || isLocal(url)) return null
  if (isExempt(hostname, port || '443', noProxy)) return null
  const written = httpsProxy.includes('://') ? httpsProxy : `http://${httpsProxy}`
  const proxy = URL.canParse(written) ? new URL(written) : null
  if (proxy === null || !/^https?:$/.test(proxy.protocol))
    throw new UsageError('HTTPS_PROXY is not a URL that starts with http:// or https://.')
  return { url: proxy.origin, login: loginOf(proxy) }
}

function loginOf({ username, password }: URL): string | null {
  if (username === '' && password === '') return null
  try {
    const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return `Basic ${Buffer.from(text).toString('base64')}`
  } catch {
    throw new UsageError('The login of HTTPS_PROXY is not percent-encoded: a % in it is written %25.')
  }
}

/** `*`, `host`, `.host` and `*.host`, each also with a port. A name stands for the names below it, too. */
function isExempt(hostname: string, port: string, noProxy: string): boolean {
  const host = hostname.toLowerCase()
  return noProxy
    .toLowerCase()
    .split(/[,\s]+/)
    .some((entry) => {
      if (entry === '*') return true
      const [, name = '', only = port] = /^(?:\*?\.)?(.+?)(?::(\d+))?$/.exec(entry) ?? []
      return name !== '' && only === port && (host === name || host.endsWith(`.${name}`))
    })
}

/**
 * The `fetch` through the proxy. Both it and the agent are undici's own: that of Node is another version, which takes no agent of
 * this one. It is loaded only here, because most programs have no proxy.
 */
export async function fetchThrough({ url, login }: HttpProxy): Promise<typeof fetch> {
  const undici = await import('undici')
  const dispatcher = new undici.ProxyAgent({ uri: url, ...(login !== null && { token: login }) })
  const through = (input: string | URL, init: object) => undici.fetch(input, { ...init, dispatcher })
  return through as unknown as typeof fetch
}

/** The reason why the proxy gave no answer; null where it is not the cause. @param error the cause of that of `fetch` */
export function whyNotThrough(
  { url, login }: HttpProxy,
  service: string,
  error: unknown,
): { readonly message: string; readonly isFinal: boolean } | null {
  const { host, hostname } = new URL(service)
  const reason = reasonOf(error)
  const without = `name ${hostname} in NO_PROXY`
  if (notConnected.test(reason))
    return {
      message: `the proxy ${url} of HTTPS_PROXY does not answer (${reason}): correct HTTPS_PROXY, or ${without} if it is reached without a proxy`,
      isFinal: reason === 'ENOTFOUND',
    }
  // undici has the status in this message alone, below an error "Request was cancelled".
  const [, answered] = /^Proxy response \((\d+)\)/.exec(String(Object(Object(error).cause).message)) ?? []
  if (answered === undefined) return null
  const status = Number(answered)
  if (status !== 407)
    return {
      message: `the proxy ${url} of HTTPS_PROXY gives no way to ${host} (${status}): have it allowed there, or ${without}`,
      isFinal: status < 500,
    }
  const remedy =
    login === null
      ? `wants a login (407): write it into HTTPS_PROXY, as USER:PASSWORD@${new URL(url).host}`
      : 'refuses the login of HTTPS_PROXY (407): correct it; signs such as @ and : in it are percent-encoded'
  return { message: `the proxy ${url} ${remedy}`, isFinal: true }
}

/** The codes of errors before anything was sent. */
export const notConnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/

/** Whether the service is on this machine: requests to it cross no network. */
export const isLocal = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
