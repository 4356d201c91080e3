import { Redis } from 'ioredis'
import { Problem } from '../errors.ts'
import type { RedisHost, RedisPlace } from '../redis-url.ts'
import { limitTime } from '../time-limit.ts'
import { mastersOf, type RedisClient } from './redis.ts'

/** The check of Redis at the start of a process: its settings, and why it cannot be used. */

const unchecked =
  'How Redis is set up could not be checked. It must have maxmemory-policy noeviction and should have appendonly yes: see to it where it is run.'
const unkept =
  'Redis keeps no append-only file (appendonly no): should it crash, the jobs in it are lost, and their runs wait until a worker enqueues them again. Set appendonly to yes.'

const reachedWithinMs = 5_000

/**
 * Checks the answers to INFO, which BullMQ needs too: hosted servers forbid CONFIG. Each master of a Cluster is checked.
 *
 * @returns warnings for the operator
 * @throws {Problem} `unavailable` when it cannot be reached, is of another kind than the URL says, or evicts jobs
 */
export async function checkRedis(client: RedisClient, place: RedisPlace): Promise<string[]> {
  const warnings = new Set<string>()
  for (const info of await reach(client, place)) for (const warning of judge(info, place)) warnings.add(warning)
  return [...warnings]
}

const settingIn = (info: string, name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]

/** @returns warnings @throws {Problem} `unavailable` */
function judge(info: string, { kind }: RedisPlace): string[] {
  const wrong = kind === 'single' ? wrongKind(settingIn(info, 'redis_mode')) : undefined
  if (wrong !== undefined) throw new Problem('unavailable', `REDIS_URL names one Redis, but it is ${wrong}.`)
  const [policy, appends] = [settingIn(info, 'maxmemory_policy'), settingIn(info, 'aof_enabled')]
  // Redis deletes jobs silently under any other policy.
  if (policy !== undefined && policy !== 'noeviction')
    throw new Problem(
      'unavailable',
      `Redis evicts keys (maxmemory-policy ${policy}): set it to noeviction, or jobs get lost.`,
    )
  if (policy === undefined || appends === undefined) return [unchecked]
  return appends === '0' ? [unkept] : []
}

/** The kind of a server that differs from REDIS_URL, and the right form of the URL. */
const wrongKind = (mode: string | undefined): string | undefined =>
  ({
    sentinel: 'a Sentinel: write redis+sentinel://host:port,host:port/name',
    cluster: 'a node of a Redis Cluster: write redis+cluster://host:port,host:port',
  })[mode ?? '']

/** Reads INFO of each master; empty where that is forbidden. */
async function reach(client: RedisClient, place: RedisPlace): Promise<string[]> {
  try {
    if (client.status !== 'ready')
      await limitTime(isReady(client), reachedWithinMs, () => {
        throw new Error(`no connection within ${reachedWithinMs / 1_000} s`)
      })
    return await Promise.all(mastersOf(client).map(readInfo))
  } catch (error) {
    throw new Problem('unavailable', await whyAway(place), { retryAfterS: 1, cause: error })
  }
}

async function readInfo(redis: Redis): Promise<string> {
  try {
    return await redis.info()
  } catch (error) {
    if (error instanceof Error && /unknown command|NOPERM/i.test(error.message)) return ''
    throw error
  }
}

/** Waits through failed attempts to connect, which `once` of node:events would report. */
const isReady = (client: RedisClient) => new Promise<void>((resolve) => client.once('ready', () => resolve()))

const askedForMs = 1_000
/** The most hosts that are asked. All are asked at the same time. */
const mostAsked = 10

/** Asks the hosts of the URL themselves, each by itself. @returns a sentence with the cause, as far as it can be found */
async function whyAway(place: RedisPlace): Promise<string> {
  const away = 'Redis cannot be reached at REDIS_URL'
  if (place.kind === 'single') return `${away}.`
  const answers = await Promise.all(place.hosts.slice(0, mostAsked).map((host) => ask(host, place)))
  const found = answers.filter((answer) => answer !== null)
  const [first] = found
  if (first === undefined) return `${away}: none of its hosts answers.`
  const other = found.find(({ mode }) => mode !== undefined && mode !== place.kind)
  if (other !== undefined) {
    const what = wrongKind(other.mode) ?? 'one Redis by itself: write redis://host:port'
    return `REDIS_URL names a ${place.kind === 'cluster' ? 'Redis Cluster' : 'Sentinel'}, but ${other.host} is ${what}.`
  }
  if (place.kind === 'cluster')
    return `${away}: nodes of the Cluster answer, but it does not serve all slots, or refuses the login.`
  const masters = [...new Set(found.flatMap(({ masters }) => masters))]
  return masters.includes(place.name)
    ? `${away}: its Sentinels answer, but the master that they name does not, or refuses the login.`
    : `The Sentinels of REDIS_URL do not know a master "${place.name}"${masters.length === 0 ? '' : `, only ${masters.map((name) => `"${name}"`).join(', ')}`}.`
}

/** @returns null when it does not answer */
async function ask({ host, port }: RedisHost, place: RedisPlace & { kind: 'sentinel' | 'cluster' }) {
  const { username, password } = place.kind === 'sentinel' ? place.sentinels : place
  const redis = new Redis({
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    connectTimeout: askedForMs,
    commandTimeout: askedForMs,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(place.tls && { tls: {} }),
  })
  redis.on('error', () => {})
  try {
    await redis.connect()
    const mode = settingIn(await readInfo(redis), 'redis_mode')
    return { host: `${host}:${port}`, mode, masters: mode === 'sentinel' ? await readMasters(redis) : [] }
  } catch {
    return null
  } finally {
    redis.disconnect()
  }
}

/** Reads the names of the masters of a Sentinel: each master is a list of names and values. */
async function readMasters(redis: Redis): Promise<string[]> {
  const masters = await redis.call('SENTINEL', 'MASTERS')
  return (Array.isArray(masters) ? masters : []).flatMap((fields: unknown) => {
    const name = Array.isArray(fields) ? fields[fields.indexOf('name') + 1] : undefined
    return typeof name === 'string' ? [name] : []
  })
}
