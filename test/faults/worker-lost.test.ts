import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { ApplyQueue } from '../../src/queue/backend.ts'
import { until } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, quantile } from './clients.ts'
import { onBothQueues, onQueue, openStand } from './stand.ts'
import { seeded, supervise } from './supervisor.ts'

/** Workers die at any moment: no run is lost, doubled or half done, and every client gets an answer. */

/** The clients go on beyond 200 applications on a fast machine until there were this many. */
const fewestKills = 6

onBothQueues((kind) => {
  test('SIGKILL at random moments while 8 clients apply 200 applications', { timeout: 180_000 }, async () => {
    const stand = await openStand(kind)
    const seed = Date.now() % 2 ** 31
    const random = seeded(seed)
    const supervisor = await supervise(() => stand.startWorker())
    let answered = false
    const killing = (async () => {
      while (!answered) {
        await supervisor.ready()
        await delay(50 + random() * 1_450)
        supervisor.kill()
      }
    })()
    const sent = await crowd(stand, 8, 'killed', (begun) => begun >= 200 && supervisor.kills >= fewestKills)
    answered = true
    await killing
    console.log(`${kind}: ${supervisor.kills} kills (seed ${seed}), ${describeTimes(sent)}`)
    expect(await audit(stand.db, sent)).toEqual([])
    // Jobs whose workers were killed run again.
    await until('the other jobs', () => onQueue(stand, hasEnded), { withinMs: 60_000 })
    expect(await audit(stand.db, sent)).toEqual([])
    await supervisor.stop()
    expect(sent.map(({ status }) => status)).not.toContain(null)
    // A slow machine kills each worker with more runs inside: some of them lose three.
    expect(quantile(sent, 0.95)).toBeLessThan(5_000)
  })
})

/** The probes aside. */
async function hasEnded(queue: ApplyQueue): Promise<boolean> {
  const jobs = await queue.getJobs(['active', 'waiting', 'prioritized', 'delayed'])
  return !jobs.some(({ name }) => name.startsWith('apply '))
}
