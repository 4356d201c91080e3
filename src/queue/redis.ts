import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { RedisPlace } from '../redis-url.ts'

/** A connection to Redis, to the master that Sentinels name, or to the nodes of a Cluster. */
export type RedisClient = Redis | Cluster

/**
 * The prefix of BullMQ's keys. Its scripts need all keys of a queue on one node of a Cluster: the text in braces decides which.
 * Elsewhere it stays the default, under which earlier versions have added jobs (docs/adr/0092-redis-by-sentinel-and-cluster.md).
 */
export const prefixOf = ({ kind }: RedisPlace): { prefix?: string } =>
  kind === 'cluster' ? { prefix: '{gatewright}' } : {}

/** The settings of one connection; the types of its answers stay those of ioredis. */
type Settings = Omit<RedisOptions, 'replyMapping'>

/** @property queues commands wait while there is no connection; else they fail at once */
type Limits = Pick<Settings, 'maxRetriesPerRequest' | 'commandTimeout' | 'socketTimeout'> & {
  readonly queues: boolean
}

const connectTimeout = 2_000
/** A Sentinel without an answer within this time counts as frozen, and the next one is tried. */
const sentinelCommandTimeout = 1_000
const backoff = (times: number) => Math.min(50 * times, 500)
/** A Cluster moves slots by itself. A wrong node answers that it is wrong, but a lost one does not. */
const slotsRefreshInterval = 5_000

/** Opens a connection. It connects again by itself until `disconnect`. */
export function openRedis(place: RedisPlace, { queues, ...limits }: Limits): RedisClient {
  const client = open(place, { ...limits, connectTimeout }, queues)
  // Callers report the errors of their calls. Without a listener, ioredis prints them too.
  client.on('error', () => {})
  return client
}

function open(place: RedisPlace, common: Settings, enableOfflineQueue: boolean): RedisClient {
  const own = { ...common, enableOfflineQueue, retryStrategy: backoff }
  if (place.kind === 'single') return new Redis(place.url, own)
  const login = {
    ...(place.username !== undefined && { username: place.username }),
    ...(place.password !== undefined && { password: place.password }),
    ...(place.tls && { tls: {} }),
  }
  return place.kind === 'sentinel'
    ? new Redis({ ...own, ...login, ...throughSentinels(place) })
    : openCluster(place, enableOfflineQueue, { ...common, ...login })
}

function throughSentinels(place: RedisPlace & { kind: 'sentinel' }): Settings {
  const { hosts, name, db, tls, sentinels } = place
  return {
    sentinels: [...hosts],
    name,
    db,
    sentinelRetryStrategy: backoff,
    sentinelCommandTimeout,
    ...(sentinels.username !== undefined && { sentinelUsername: sentinels.username }),
    ...(sentinels.password !== undefined && { sentinelPassword: sentinels.password }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    // A master that was replaced while it did not answer is a replica when it comes back: the Sentinels know the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  }
}

function openCluster(
  { hosts, tls }: RedisPlace & { kind: 'cluster' },
  enableOfflineQueue: boolean,
  redisOptions: Settings,
): Cluster {
  const cluster = new Cluster([...hosts], {
    enableOfflineQueue,
    redisOptions,
    clusterRetryStrategy: backoff,
    slotsRefreshInterval,
    // The certificate of a node is for its name.
    ...(tls && { dnsLookup: (host, found) => found(null, host) }),
  })
  // ioredis connects to a node at the first command for it. All other commands fail until then when they may not wait.
  cluster.on('+node', (node: Redis) => void node.connect().catch(() => {}))
  return cluster
}

/** The nodes that hold data and take writes. */
export const mastersOf = (client: RedisClient): readonly Redis[] =>
  client instanceof Cluster ? client.nodes('master') : [client]
