import { Redis } from 'ioredis'
import { inject } from 'vitest'
import { atEnd } from './at-end.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

/**
 * The URL of an empty Redis database of the test file's own, on the server that the run shares. The file's tests
 * stand under `describe.runIf(needs('redis-server'))`.
 */
export async function freshRedis(): Promise<string> {
  const { redisUrl } = inject('servers')
  if (redisUrl === null)
    throw new Error("redis-server is not installed: put these tests under describe.runIf(needs('redis-server'))")
  const shared = new Redis(redisUrl)
  try {
    const url = `${redisUrl}/${await shared.incr('databases')}`
    atEnd(async () => {
      const own = new Redis(url)
      await own.flushdb()
      own.disconnect()
    })
    return url
  } finally {
    shared.disconnect()
  }
}

/** A Redis server of the test's own, which it may stop, kill and start again; removed after the test file. */
export async function ownRedis(options: Parameters<typeof startRedis>[0] = {}): Promise<RedisServer> {
  const server = await startRedis(options)
  atEnd(() => server.remove())
  return server
}
