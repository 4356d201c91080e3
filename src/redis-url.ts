/** The parts of REDIS_URL: one Redis, or several of them behind Sentinels or in a Cluster. */

export type RedisHost = { readonly host: string; readonly port: number }

type Login = { readonly username?: string; readonly password?: string }

type Several = Login & {
  /** The Sentinels, which know where the master is, or some nodes of a Cluster, which know the others. */
  readonly hosts: readonly RedisHost[]
  readonly tls: boolean
}

export type RedisPlace =
  | { readonly kind: 'single'; readonly url: string }
  | (Several & {
      readonly kind: 'sentinel'
      /** The name of the master, as `sentinel monitor` has it. */
      readonly name: string
      readonly db: number
      /** The login at the Sentinels themselves. */
      readonly sentinels: Login
    })
  | (Several & { readonly kind: 'cluster' })

const notOne =
  'is not a URL that starts with redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://.'

const maxHosts = 50
const defaultPorts = { sentinel: 26_379, cluster: 6_379 } as const

/**
 * The reason why a URL is not valid. It continues the name of the setting, and does not repeat the URL, which may hold a
 * password.
 */
export class RedisUrlError extends Error {
  override readonly name = 'RedisUrlError'
}

/** @throws {RedisUrlError} */
export function readRedisUrl(text: string): RedisPlace {
  const [, scheme = '', tls, kind] = /^((?:redis(s)?)(?:\+(sentinel|cluster))?):\/\//.exec(text) ?? []
  if (scheme === '') throw new RedisUrlError(notOne)
  if (kind === 'sentinel' || kind === 'cluster') return readSeveral(text, kind, tls === 's')
  if (URL.canParse(text)) return { kind: 'single', url: text }
  throw new RedisUrlError(
    text.includes(',')
      ? `names several hosts, or is not a URL: several take redis+sentinel:// or redis+cluster://.`
      : notOne,
  )
}

function readSeveral(text: string, kind: 'sentinel' | 'cluster', tls: boolean): RedisPlace {
  const form = kind === 'sentinel' ? 'host:port,host:port/name' : 'host:port,host:port'
  const [, login, list = '', path = '', query = ''] =
    /^[^/]+:\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/.exec(text) ?? []
  if (list === '') throw new RedisUrlError(`is not of the form redis+${kind}://${form}.`)
  const hosts = list.split(',').map((host) => readHost(host, defaultPorts[kind]))
  if (hosts.length > maxHosts) throw new RedisUrlError(`names more than ${maxHosts} hosts: some of them are enough.`)
  const more = new URLSearchParams(query)
  const place = { hosts, tls, ...readLogin(login) }
  if (kind === 'cluster') {
    if (path.replace('/', '') !== '')
      throw new RedisUrlError('has a path: a Redis Cluster has one database, without a number.')
    refuseOthers(more, [])
    return { kind, ...place }
  }
  const [, name = '', db = '0'] = /^\/([^/]+)(?:\/(\d{1,5}))?\/?$/.exec(path) ?? []
  if (name === '')
    throw new RedisUrlError(`lacks the name of the master, as "sentinel monitor" has it: redis+sentinel://${form}.`)
  refuseOthers(more, ['sentinel_username', 'sentinel_password'])
  const [username, password] = [more.get('sentinel_username'), more.get('sentinel_password')]
  const sentinels = { ...(username && { username }), ...(password && { password }) }
  return { kind, ...place, name: decoded(name), db: Number(db), sentinels }
}

function refuseOthers(query: URLSearchParams, known: readonly string[]): void {
  const other = [...query.keys()].find((name) => !known.includes(name))
  if (other !== undefined)
    throw new RedisUrlError(`has a parameter that is not known: it takes ${known.join(' and ') || 'none'}.`)
}

function readHost(text: string, defaultPort: number): RedisHost {
  const [, ipv6, name, port] = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const host = ipv6 ?? name
  const number = port === undefined ? defaultPort : Number(port)
  if (host === undefined || number < 1 || number > 65_535)
    throw new RedisUrlError('has a host that is not host:port. In a user or a password, percent-encode @ / ? # and :')
  return { host, port: number }
}

function readLogin(login = ''): Login {
  const [, username, password] = /^([^:]*):?(.*)$/s.exec(login) ?? []
  return { ...(username && { username: decoded(username) }), ...(password && { password: decoded(password) }) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RedisUrlError('has a % that is not percent-encoding: write it as %25.')
  }
}
