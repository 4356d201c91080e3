import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { whyNoChanges } from '../../src/db/accepts-changes.ts'
import { connect } from '../../src/db/client.ts'
import { whyNoJobs } from '../../src/queue/accepts-jobs.ts'
import { atEnd, freePort, freshDatabase, needs, ownRedis, queueOn } from '../support/kit.ts'

/** A store that answers questions, and takes nothing. Full disks are tested by `npm run faults`. */

test.runIf(needs('redis-server'))('a queue on Redis: says why it takes no jobs', async () => {
  const server = await ownRedis()
  const { queue } = await queueOn({ redisUrl: server.url, databaseUrl: (await freshDatabase()).url })
  const redis = new Redis(server.url)
  atEnd(() => redis.disconnect())
  expect(await whyNoJobs(queue)).toBeNull()
  await redis.config('SET', 'maxmemory', '1')
  expect(await whyNoJobs(queue)).toMatch(/is full/)
  await redis.config('SET', 'maxmemory', '0')
  await redis.replicaof('127.0.0.1', await freePort())
  expect(await whyNoJobs(queue)).toMatch(/is a replica/)
  await redis.replicaof('NO', 'ONE')
  expect(await whyNoJobs(queue)).toBeNull()
})

test('a queue on PostgreSQL leaves that to the database', async () => {
  const { queue } = await queueOn({ redisUrl: null, databaseUrl: (await freshDatabase()).url })
  expect(await whyNoJobs(queue)).toBeNull()
})

test('a database says why it accepts no changes', async () => {
  const { url } = await freshDatabase()
  const { db } = connect(url, { applicationName: 'test', max: 1 })
  atEnd(() => db.$disconnect())
  expect(await whyNoChanges(db)).toBeNull()
  await db.$executeRawUnsafe('SET default_transaction_read_only = on')
  expect(await whyNoChanges(db)).toBe('it is read-only')
  await db.$executeRawUnsafe('SET default_transaction_read_only = off')
  // An operator's limit on temporary files says nothing about the disk.
  await db.$executeRawUnsafe("SET temp_file_limit = '64kB'")
  expect(await whyNoChanges(db)).toBeNull()
})
