import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { needs, until } from '../support/kit.ts'
import { startCluster, startSentinelGroup } from '../support/redis-groups.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, type Sent } from './clients.ts'
import { recordRecovery } from './record.ts'
import { openStand } from './stand.ts'

/** A master of several Redis is killed under load. */

/** A second until the Sentinels miss it, their election, and what connects again. */
const recoveredWithinMs = 15_000

/** @param kill ends a master, and is done when another serves, or it again */
async function killUnderLoad(redisUrl: string, kill: () => Promise<void>): Promise<void> {
  const stand = await openStand('redis', { redisUrl })
  const workers = [await stand.startWorker(), await stand.startWorker()]
  let over = false
  const sending = crowd(stand, 4, 'around', () => over)
  await delay(1_500)
  const killedAt = performance.now()
  await kill()
  const first: Sent[] = []
  await until(
    'a submission to be applied',
    async () => {
      first.push(await put(stand, 'first'))
      return first.at(-1)?.status === 200
    },
    { withinMs: recoveredWithinMs, everyMs: 100 },
  )
  const recoveredMs = performance.now() - killedAt
  recordRecovery(recoveredMs)
  await delay(1_000)
  over = true
  const around = await sending
  const after = await crowd(stand, 4, 'after', (begun) => begun >= 50)
  console.log(`a master is killed: ${describeTimes(around)}; applied again after ${Math.round(recoveredMs)} ms`)
  expect(around.filter(({ status }) => status === 200).length).toBeGreaterThan(10)
  expect(new Set(around.map(({ status }) => status)).difference(new Set([200, 202, 503]))).toEqual(new Set())
  expect([...new Set(after.map(({ status }) => status))]).toEqual([200])
  expect(await audit(stand.db, [...around, ...first, ...after])).toEqual([])
  for (const worker of workers) await worker.stop()
}

describe.runIf(needs('redis-server'))('queue on Redis', () => {
  test('the master of Sentinels is killed under load, and another takes its place: nothing is lost', {
    timeout: 180_000,
  }, async () => {
    const { url, master } = await startSentinelGroup()
    await killUnderLoad(url, () => master.kill())
  })

  test('each master of a Cluster is killed and started again under load: nothing is lost', {
    timeout: 180_000,
  }, async () => {
    const { url, masters } = await startCluster()
    await killUnderLoad(url, async () => {
      for (const each of masters) {
        await each.kill()
        await delay(1_500)
        await each.start()
        await delay(1_500)
      }
    })
  })
})
