import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { audit } from './auditor.ts'
import { crowd, describeTimes } from './clients.ts'
import { sendMany } from './many-clients.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** Far more clients than the service can serve. */

const clients = 500
const forMs = 20_000
/** A client that is refused comes again, sooner than `Retry-After` says. */
const comesAgainMs = 500
const promptMs = 1_000
const atMostMs = 3_000
/** A process that is late once is late at each of the steps of a request: on a machine that does much else, all of it takes longer. */
const steps = 4
const everyMs = 100

const sorted = (times: number[]) => times.sort((one, other) => one - other)
const p95 = (times: readonly number[]) => times[Math.ceil(times.length * 0.95) - 1] ?? Number.NaN
const ms = (time: number | undefined) => Math.round(time ?? Number.NaN)

/** @returns how long each probe took, and how late this process was at worst, which waits for a processor as the service does */
async function probes({ url }: Stand, isOver: () => boolean): Promise<{ times: number[]; lateMs: number }> {
  const times: number[] = []
  let lateMs = 0
  while (!isOver()) {
    for (const path of ['live', 'ready']) {
      const from = performance.now()
      await (await fetch(`${url}/-/health/${path}/`)).text()
      times.push(performance.now() - from)
    }
    const from = performance.now()
    await delay(everyMs)
    lateMs = Math.max(lateMs, performance.now() - from - everyMs)
  }
  return { times: sorted(times), lateMs }
}

onBothQueues((kind) => {
  test(`${clients} clients for 20 s: what is not admitted is refused within a second (p95), probes answer, and no answer is vague`, {
    timeout: 120_000,
  }, async () => {
    const stand = await openStand(kind)
    const worker = await stand.startWorker()
    // Code that runs for the first time is slow.
    const before = await crowd(stand, 8, 'before', (begun) => begun === 100)
    let over = false
    const probing = probes(stand, () => over)
    const log = await sendMany(stand, { clients, forMs, comesAgainMs, prefix: 'crowded' })
    over = true
    const { times: probed, lateMs } = await probing
    const refused = log.filter(({ status }) => status === 503)
    const full = sorted(
      refused.filter(({ text }) => /submissions are waiting already/.test(text)).map((each) => each.ms),
    )
    console.log(
      `${kind}: ${describeTimes(log)}; ${full.length} refused at once, within ${ms(p95(full))} ms (p95), at most ${ms(full.at(-1))} ms`,
    )
    console.log(
      `${kind}: ${probed.length} probes, p95 ${ms(p95(probed))} ms, at most ${ms(probed.at(-1))} ms; late by ${ms(lateMs)} ms`,
    )
    expect(new Set(log.map(({ status }) => status)).difference(new Set([200, 202, 503]))).toEqual(new Set())
    for (const { text } of log.filter(({ status }) => status === 202)) {
      const [, id = ''] = /runs\/([0-9a-f-]+)\//.exec(text) ?? []
      expect(await stand.db.run.count({ where: { id } })).toBe(1)
    }
    expect(full.length).toBeGreaterThan(100)
    expect(p95(full)).toBeLessThan(promptMs + steps * lateMs)
    // Five processes share the processors: on a slow machine the last of ten thousand waits for all others.
    expect(full.at(-1)).toBeLessThan(atMostMs + steps * lateMs)
    expect(probed.at(-1)).toBeLessThan(atMostMs + steps * lateMs)
    expect(await audit(stand.db, [...before, ...log])).toEqual([])
    await worker.stop()
  })
})
