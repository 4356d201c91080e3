import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put } from './clients.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** Far more clients than the service can serve. */

const clients = 250
const forMs = 6_000
/** A client that is refused comes again, sooner than `Retry-After` says. */
const comesAgainMs = 500
const promptMs = 1_000

/** Milliseconds of refusals as the API measured them, without the clients, which take most of the machine. */
function refusals({ api }: Stand): number[] {
  const lines = api
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
  return lines
    .filter(({ msg, detail }) => msg === 'answered' && /submissions are waiting already/.test(detail))
    .map(({ ms }) => Number(ms))
    .sort((one, other) => one - other)
}

const p95 = (times: readonly number[]) => times[Math.ceil(times.length * 0.95) - 1] ?? Number.NaN

async function probes({ url }: Stand, isOver: () => boolean): Promise<number[]> {
  const times: number[] = []
  while (!isOver()) {
    for (const path of ['live', 'ready']) {
      const from = performance.now()
      await (await fetch(`${url}/-/health/${path}/`)).text()
      times.push(performance.now() - from)
    }
    await delay(100)
  }
  return times
}

onBothQueues((kind) => {
  test('250 clients: what is not admitted is refused soon, probes answer, and no answer is vague', {
    timeout: 60_000,
  }, async () => {
    const stand = await openStand(kind)
    const worker = await stand.startWorker()
    // Code that runs for the first time is slow.
    const log = await crowd(stand, 8, 'before', (begun) => begun === 100)
    let over = false
    const client = async (_: unknown, index: number) => {
      for (let times = 0; !over; times += 1) {
        const sent = await put(stand, `crowded-${index}-${times}`)
        log.push(sent)
        if (sent.status !== 200) await delay(comesAgainMs)
      }
    }
    const sending = Promise.all(Array.from({ length: clients }, client))
    const probing = probes(stand, () => over)
    await delay(forMs)
    over = true
    await sending
    const probed = (await probing).sort((one, other) => one - other)
    const refused = refusals(stand)
    console.log(`${kind}: ${describeTimes(log)}; refused within ${p95(refused)} ms (p95)`)
    console.log(`${kind}: ${probed.length} probes, at most ${Math.round(probed.at(-1) ?? Number.NaN)} ms`)
    expect(new Set(log.map(({ status }) => status)).difference(new Set([200, 202, 503]))).toEqual(new Set())
    for (const { text } of log.filter(({ status }) => status === 202)) {
      const [, id = ''] = /runs\/([0-9a-f-]+)\//.exec(text) ?? []
      expect(await stand.db.run.count({ where: { id } })).toBe(1)
    }
    expect(refused.length).toBeGreaterThan(10)
    expect(p95(refused)).toBeLessThan(promptMs)
    expect(probed.at(Math.floor(probed.length / 2))).toBeLessThan(promptMs)
    expect(await audit(stand.db, log)).toEqual([])
    await worker.stop()
  })
})
