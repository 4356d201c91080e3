import { beforeAll, expect, test } from 'vitest'
import { audit } from './auditor.ts'
import { put, type Sent } from './clients.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** Many identical requests at once have one effect. Their clients wait long enough for a slow machine, too. */

const applyWaitMs = 25_000

onBothQueues((kind) => {
  let stand: Stand
  const log: Sent[] = []
  beforeAll(async () => {
    stand = await openStand(kind, { applyWaitMs })
  })

  const putAtOnce = async (count: number, slug: string, ifNoneMatch?: '*') => {
    const options = ifNoneMatch === undefined ? {} : { ifNoneMatch }
    const sent = await Promise.all(Array.from({ length: count }, () => put(stand, slug, options)))
    log.push(...sent)
    return sent
  }
  const countOf = (sent: readonly Sent[], status: number) => sent.filter((each) => each.status === status).length

  test('100 identical PUTs at once: one effect, all 200', { timeout: 120_000 }, async () => {
    const worker = await stand.startWorker()
    const sent = await putAtOnce(100, 'same')
    expect(sent.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 100 }, () => 'applied'))
    const created = sent.filter(({ text }) => /application \\"same\\" created/.test(text))
    const unchanged = sent.filter(({ text }) => /application \\"same\\" unchanged/.test(text))
    expect([created.length, unchanged.length]).toEqual([1, 99])
    expect(await audit(stand.db, log)).toEqual([])
    await worker.stop()
  })

  test('100 identical PUTs at once with If-None-Match: *: one 200 and 99 times 412', { timeout: 120_000 }, async () => {
    const worker = await stand.startWorker()
    const sent = await putAtOnce(100, 'only-one', '*')
    expect([countOf(sent, 200), countOf(sent, 412)]).toEqual([1, 99])
    expect(await audit(stand.db, log)).toEqual([])
    await worker.stop()
  })
})
