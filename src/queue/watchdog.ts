import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import type { Logger } from '../log.ts'
import type { ApplyQueue } from './backend.ts'
import type { Consumer } from './consumer.ts'
import { answered } from './enqueue.ts'
import { sinceConsumptionS } from './heartbeat.ts'

/** The time of two missed probes. */
const silentS = 8
const everyMs = 4_000

/**
 * Opens the consumer's connections anew when no worker has taken a job for `silentS` seconds, though this one is free and the
 * queue is not paused. The time-outs of the connections find most causes of a worker that gets no jobs; this finds the rest.
 */
export function startWatchdog(db: Db, queue: ApplyQueue, consumer: Consumer, log: Logger): { stop(): void } {
  let notBefore = performance.now() + silentS * 1_000

  async function watch(): Promise<void> {
    if (consumer.busy() >= consumer.slots() || performance.now() < notBefore) return
    const sinceS = await inTime(sinceConsumptionS(db))
    if (sinceS !== null && sinceS < silentS) return
    if (await answered(queue.isPaused())) return
    notBefore = performance.now() + silentS * 1_000
    log.warn({ silentS: sinceS }, 'no worker takes jobs: opening the connections to the queue anew')
    await consumer.reopen()
  }

  // Other parts report an outage; the next round tries again.
  const timer = setInterval(() => void watch().catch(() => {}), everyMs)
  return { stop: () => clearInterval(timer) }
}
