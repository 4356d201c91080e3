import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'
import { ownRedis } from './redis.ts'
import type { RedisServer } from './redis-server.ts'
import { until } from './until.ts'

/** Several Redis that belong together, as processes: behind Sentinels, or in a Cluster. Removed after the test file. */

export type SentinelGroup = {
  /** `redis+sentinel://...` */
  readonly url: string
  readonly sentinels: readonly RedisServer[]
  /** The master at the start; the other one is its replica. */
  readonly master: RedisServer
  readonly replica: RedisServer
}

export const masterName = 'gatewright-master'

/** A master that does not answer for so long is replaced. */
const downAfterMs = 1_000

/** A master and a replica with a password, and three Sentinels. */
export async function startSentinelGroup(): Promise<SentinelGroup> {
  const password = 'a password: of/this@group'
  const flags = ['--requirepass', password, '--masterauth', password]
  const master = await ownRedis({ flags })
  const replica = await ownRedis({ flags: [...flags, '--replicaof', '127.0.0.1', String(master.port)] })
  const sentinel = [
    `sentinel monitor ${masterName} 127.0.0.1 ${master.port} 2`,
    `sentinel auth-pass ${masterName} "${password}"`,
    `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
    `sentinel failover-timeout ${masterName} 5000`,
  ]
  const sentinels = await Promise.all([1, 2, 3].map(() => ownRedis({ sentinel })))
  for (const { port } of sentinels)
    await untilSaid(port, (redis) => redis.call('SENTINEL', 'MASTER', masterName), /num-slaves,1,num-other-sentinels,2/)
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return { url: `redis+sentinel://:${encodeURIComponent(password)}@${hosts}/${masterName}`, sentinels, master, replica }
}

export type ClusterGroup = {
  /** `redis+cluster://...` */ readonly url: string
  readonly masters: readonly RedisServer[]
}

const slots = 16_384

/** Three masters, each with a third of the slots. */
export async function startCluster(): Promise<ClusterGroup> {
  const masters = await Promise.all(
    [0, 1, 2].map(async () => {
      const bus = await freePort()
      const flags = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000', '--cluster-port', String(bus)]
      return { bus, server: await ownRedis({ durable: true, flags }) }
    }),
  )
  for (const [index, { server }] of masters.entries()) {
    const bound = (part: number) => Math.floor((slots * part) / masters.length)
    await asked(server.port, async (redis) => {
      await redis.call('CLUSTER', 'ADDSLOTSRANGE', bound(index), bound(index + 1) - 1)
      for (const other of masters.slice(0, index))
        await redis.call('CLUSTER', 'MEET', '127.0.0.1', other.server.port, other.bus)
    })
  }
  const servers = masters.map(({ server }) => server)
  for (const { port } of servers)
    await untilSaid(port, (redis) => redis.call('CLUSTER', 'INFO'), /cluster_state:ok.*cluster_known_nodes:3/s)
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return { url: `redis+cluster://${hosts}`, masters: servers }
}

/** Asks on a connection of its own. */
async function asked<Answer>(port: number, ask: (redis: Redis) => Promise<Answer>): Promise<Answer> {
  const redis = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: 1, enableReadyCheck: false })
  try {
    return await ask(redis)
  } finally {
    redis.disconnect()
  }
}

async function untilSaid(port: number, ask: (redis: Redis) => Promise<unknown>, pattern: RegExp): Promise<void> {
  const said = () => asked(port, ask).then((answer) => pattern.test(String(answer)))
  await until(`Redis on port ${port} to know the others`, said, { withinMs: 20_000, everyMs: 100 })
}
