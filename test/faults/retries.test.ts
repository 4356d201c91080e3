import { expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { submission } from './clients.ts'
import { recordCalls } from './record.ts'
import { applyPath, type Got, isApplied, runOf, send } from './requests.ts'
import { onBothQueues, onQueue, openStand, type Stand } from './stand.ts'

/** A retry under its `Idempotency-Key`, while everything else is refused: the answer is that of its run. */

const applyWaitMs = 1_500
/** More than one API admits at first. */
const many = 300

const put = (stand: Stand, slug: string, headers: Record<string, string> = {}) =>
  send(stand, 'PUT', applyPath, { headers, body: submission(slug, slug) })
const keyed = (slug: string) => ({ 'idempotency-key': `key-of-${slug}` })
const detailOf = ({ text }: Got): string => JSON.parse(text).detail

onBothQueues((kind) => {
  test('a retry while no worker takes, the queue is paused, and the API refuses: it gets its run, which is applied once', {
    timeout: 120_000,
  }, async () => {
    const stand = await openStand(kind, { applyWaitMs })
    const first = await stand.startWorker()
    const got: Got[] = []
    const runs = new Map<string, string>()
    const begin = async (slug: string) => {
      const answer = await put(stand, slug, { ...keyed(slug), prefer: 'respond-async' })
      expect(answer.status, answer.text).toBe(202)
      runs.set(slug, runOf(answer))
      got.push(answer)
    }
    /** What a retry answers must not be contradicted by what becomes of the run. */
    const retry = async (slug: string) => {
      const answer = await put(stand, slug, keyed(slug))
      got.push(answer)
      expect([answer.status, runOf(answer)], answer.text).toEqual([202, runs.get(slug)])
      expect(answer.text).not.toMatch(/Nothing was changed|A worker has it/)
    }
    const refusedWith = async (slug: string, why: RegExp) => {
      const answer = await put(stand, slug)
      got.push(answer)
      return answer.status === 503 && why.test(detailOf(answer))
    }

    await onQueue(stand, (queue) => queue.pause())
    await begin('paused')
    expect(await refusedWith('refused', /the queue is paused/)).toBe(true)
    await retry('paused')

    // All that are let in wait.
    const names = Array.from({ length: many }, (_, index) => `crowd-${index}`)
    const crowd = names.map((slug) => put(stand, slug))
    await until('the API to refuse', () => refusedWith('refused', /submissions are waiting already/))
    await retry('paused')
    const answers = await Promise.all(crowd)
    got.push(...answers)
    // A wait on a busy machine may end before it is known what became of the run: then it may be applied later.
    const open = names.filter((_, index) => answers[index]?.status === 202)
    await onQueue(stand, (queue) => queue.resume())

    await first.stop()
    await begin('alone')
    await until('the API to refuse without a worker', () => refusedWith('refused', /no worker has taken a job for/), {
      withinMs: 30_000,
    })
    await retry('alone')

    const second = await stand.startWorker()
    for (const [slug, id] of runs) {
      const ended = async () => (await stand.db.run.findUniqueOrThrow({ where: { id } })).state === 'done'
      await until(`the run of ${slug} to be applied`, ended)
      const last = await put(stand, slug, keyed(slug))
      got.push(last)
      expect([isApplied(last), runOf(last)], last.text).toEqual([true, id])
      expect(await stand.db.run.count({ where: { slug } })).toBe(1)
    }
    recordCalls(got)
    expect(got.filter(({ status }) => status !== 200 && status !== 202 && status !== 503)).toEqual([])
    // A 503 says that nothing was changed.
    const known = [...runs.keys(), ...open]
    expect(await stand.db.application.count({ where: { slug: { notIn: known } } })).toBe(
      got.filter(isApplied).length - runs.size,
    )
    await second.stop()
  })
})
