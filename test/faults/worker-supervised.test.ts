import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { run, until } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, quantile, type Sent } from './clients.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** Workers die under the supervisor of `npm start`, which starts the next one at once if they had taken jobs. */

const kills = 4
/** Milliseconds. */
const repeatedP99 = 5_000
/** The start of a worker, and a second until it has the runs of the killed one. */
const singleMax = 3_000

function supervised(stand: Stand) {
  const supervisor = run('test/standalone/supervised.ts', { args: ['files'], env: stand.env })
  const pids = () =>
    [...supervisor.output().matchAll(/"pid":(\d+).*"msg":"worker ready"/g)].map(([, pid]) => Number(pid))
  return {
    supervisor,
    /** Waits until this number of workers is ready. @returns the last one's process id */
    ready: (count: number) =>
      until(`worker ${count} to be ready`, () => pids().length >= count && pids().at(-1), { withinMs: 20_000 }),
  }
}

onBothQueues((kind) => {
  test('a worker is killed a second after each start: no client waits long, and no run is cancelled', {
    timeout: 120_000,
  }, async () => {
    const stand = await openStand(kind)
    const { supervisor, ready } = supervised(stand)
    await ready(1)
    let over = false
    const sending = crowd(stand, 4, 'killed', () => over)
    for (let count = 1; count <= kills; count += 1) {
      const pid = await ready(count)
      await delay(1_000)
      process.kill(pid, 'SIGKILL')
    }
    await ready(kills + 1)
    over = true
    const log: Sent[] = await sending
    console.log(`${kind}: ${kills} kills: ${describeTimes(log)}`)
    expect([...new Set(log.map(({ status }) => status))]).toEqual([200])
    expect(quantile(log, 0.99)).toBeLessThan(repeatedP99)
    expect(supervisor.output()).not.toMatch(/it is started again in/)

    over = false
    const single = crowd(stand, 4, 'once', () => over)
    await delay(500)
    process.kill(await ready(kills + 1), 'SIGKILL')
    await ready(kills + 2)
    await delay(1_000)
    over = true
    const after = await single
    console.log(`${kind}: one kill: ${describeTimes(after)}, at most ${Math.round(quantile(after, 1))} ms`)
    expect([...new Set(after.map(({ status }) => status))]).toEqual([200])
    expect(quantile(after, 1)).toBeLessThan(singleMax)
    log.push(...after, await put(stand, 'last'))
    expect(await audit(stand.db, log)).toEqual([])
    await supervisor.stop()
  })
})
