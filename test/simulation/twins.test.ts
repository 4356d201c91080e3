import { describe, expect, test } from 'vitest'
import { maxAttempts, patienceS, staleAfterS } from '../../src/runs/life.ts'
import { stale } from '../../src/runs/why.ts'
import { stand } from '../runs/stand.ts'
import { live, type RunEvent } from './life.ts'
import { realTwin, simulatedTwin, type Twin } from './twins.ts'

/** The ledgers of the simulation do what those of the product do on PostgreSQL: else it proves nothing. */

const nothing = { changes: [], digests: [], audited: [], generated: {}, actorName: 'admin' }
const appliedResult = { state: 'done', applied: true, reason: null, logs: ['applied'], ...nothing } as const
const failedResult = {
  ...nothing,
  state: 'failed',
  ...{ applied: false, reason: 'server_error', logs: ['failed'], cause: 'a bug' },
} as const
const ofKind = { title: 'apply', kind: 'radius', mode: 'apply' } as const
const request = { ...ofKind, request: 'r', user: null, realUser: null, isExplained: false }

/** What the reconciler has decided about a run. */
const decided = (id: string, attempts: number, event: RunEvent) => ({
  ...{ id, attempts, ...request },
  next: live({ state: 'queued', attempts }, event),
})

/** Locks a run, and applies it. @param after before the commit @returns the state in which it was */
const applying = ({ worker }: Twin, id: string, after: () => Promise<unknown> = async () => {}) =>
  worker.transaction(id, async (tx) => {
    const run = await tx.lock()
    if (run?.state === 'queued') tx.finish(run, appliedResult)
    await after()
    return run?.state
  })

/** Keeps a run locked until the returned function is called, which applies it. */
async function holding(twin: Twin, id: string): Promise<() => Promise<unknown>> {
  const [taken, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const open = applying(twin, id, () => {
    taken.resolve()
    return release.promise
  })
  await twin.until(taken.promise)
  return () => {
    release.resolve()
    return twin.until(open)
  }
}

const done = ['done', 1, true, null]
const queued = ['queued', 1, null, null]

type Steps = { readonly steps: (twin: Twin) => Promise<unknown>; readonly outcome: unknown }

const scenarios: Record<string, Steps> = {
  'a transaction that commits': {
    steps: async (twin) => {
      const id = await twin.add()
      const states = [await twin.until(applying(twin, id)), await twin.until(applying(twin, id))]
      const read = await twin.until(twin.worker.read(id))
      return [states, await twin.row(id), read?.state, read?.applied]
    },
    outcome: [['queued', 'done'], done, 'done', true],
  },
  'a transaction that fails': {
    steps: async (twin) => {
      const id = await twin.add()
      const failing = applying(twin, id, () => Promise.reject(new Error('a bug')))
      const error = await twin.until(failing.catch(String))
      return [error, await twin.row(id)]
    },
    outcome: ['Error: a bug', queued],
  },
  'no such run': {
    steps: async (twin) => {
      const id = '6f7e0000-0000-7000-8000-000000000000'
      return [await twin.until(applying(twin, id)), await twin.until(twin.worker.read(id))]
    },
    outcome: [undefined, null],
  },
  'a worker that waits for the lock of another': {
    steps: async (twin) => {
      const id = await twin.add()
      const release = await holding(twin, id)
      const waiting = applying(twin, id)
      await release()
      return [await twin.until(waiting), await twin.row(id)]
    },
    outcome: ['done', done],
  },
  'a worker that waits for too long': {
    steps: async (twin) => {
      const id = await twin.add()
      const release = await holding(twin, id)
      const failure = await twin.until(applying(twin, id).catch((error: { code?: string }) => error.code ?? 'failed'))
      await release()
      return [typeof failure, await twin.row(id)]
    },
    outcome: ['string', done],
  },
  'the reconciler and a locked run': {
    steps: async (twin) => {
      const { reconciler } = twin
      const id = await twin.add({ enqueuedS: 60, createdS: staleAfterS + 60 })
      const release = await holding(twin, id)
      const due = await twin.until(reconciler.overdue())
      const written = [
        await twin.until(reconciler.save([decided(id, 1, 'enqueue')])),
        await twin.until(reconciler.save([{ ...decided(id, 1, 'wait'), next: { state: 'failed', attempts: 1 } }])),
      ]
      await twin.until(reconciler.cancelStale())
      await release()
      return [due.length, written.map(({ size }) => size), await twin.row(id)]
    },
    outcome: [0, [0, 0], done],
  },
  'the reconciler and a finished run': {
    steps: async (twin) => {
      const { reconciler } = twin
      const id = await twin.add({ enqueuedS: 60, attempts: maxAttempts })
      await twin.until(applying(twin, id))
      const due = await twin.until(reconciler.overdue())
      const both = [decided(id, maxAttempts, 'enqueue'), decided(id, maxAttempts, 'unqueue')]
      const written = [
        await twin.until(reconciler.save(both.slice(0, 1))),
        await twin.until(reconciler.save(both.slice(1))),
      ]
      return [due.length, written.map(({ size }) => size), await twin.row(id)]
    },
    outcome: [0, [0, 0], ['done', maxAttempts, true, null]],
  },
  'the reconciler counts, and counts back': {
    steps: async (twin) => {
      const { reconciler } = twin
      const id = await twin.add({ enqueuedS: 60, attempts: 2 })
      const dueBefore = await twin.until(reconciler.overdue())
      const first = await twin.until(reconciler.save([decided(id, 2, 'enqueue')]))
      const rows = [await twin.row(id)]
      const again = await twin.until(reconciler.save([decided(id, 2, 'enqueue')]))
      await twin.until(reconciler.save([decided(id, 3, 'unqueue')]))
      const dueAfter = await twin.until(reconciler.overdue())
      const failed = await twin.failedAttempts(id)
      return [dueBefore.length, first.has(id), again.has(id), ...rows, await twin.row(id), dueAfter.length, failed]
    },
    outcome: [1, true, false, ['queued', 3, null, null], ['queued', 2, null, null], 0, [2]],
  },
  'the reconciler fails a run': {
    steps: async (twin) => {
      const id = await twin.add({ enqueuedS: 60, attempts: maxAttempts })
      const written = await twin.until(twin.reconciler.save([decided(id, maxAttempts, 'enqueue')]))
      const failed = await twin.failedAttempts(id)
      return [written.has(id), await twin.row(id), failed, await twin.until(twin.cancel(id))]
    },
    outcome: [true, ['failed', maxAttempts, false, 'unavailable'], [maxAttempts], false],
  },
  'a worker fails a run': {
    steps: async (twin) => {
      const id = await twin.add({ attempts: 2 })
      const failing = twin.worker.transaction(id, async (tx) => {
        const run = await tx.lock()
        if (run !== undefined) tx.finish(run, failedResult)
      })
      await twin.until(failing)
      return [await twin.row(id), await twin.failedAttempts(id)]
    },
    outcome: [['failed', 2, false, 'server_error'], [2]],
  },
  'patience, by the number of attempts': {
    steps: async (twin) => {
      const late: string[] = []
      for (const attempts of [1, 2, 3, 4, 5, 9]) {
        const seconds = patienceS(Math.min(attempts, maxAttempts))
        late.push(await twin.add({ attempts, enqueuedS: seconds + 0.5 + (10 - attempts) / 100 }))
        await twin.add({ attempts, enqueuedS: seconds - 0.5 })
      }
      const due = await twin.until(twin.reconciler.overdue())
      return due.map(({ id, attempts }) => [late.indexOf(id), attempts])
    },
    outcome: [
      [4, 5],
      [5, 9],
      [3, 4],
      [0, 1],
      [1, 2],
      [2, 3],
    ],
  },
  'a cancel': {
    steps: async (twin) => {
      const id = await twin.add()
      const cancels = [await twin.until(twin.cancel(id)), await twin.until(twin.cancel(id))]
      return [cancels, await twin.row(id), await twin.until(applying(twin, id))]
    },
    outcome: [[true, false], ['cancelled', 1, null, 'cancelled'], 'cancelled'],
  },
  'a cancel that waits for a worker': {
    steps: async (twin) => {
      const id = await twin.add()
      const release = await holding(twin, id)
      const cancelling = twin.cancel(id)
      await release()
      return [await twin.until(cancelling), await twin.row(id)]
    },
    outcome: [false, done],
  },
  'runs that are queued for an hour': {
    steps: async (twin) => {
      const young = await twin.add({ createdS: staleAfterS - 5 })
      const old = await twin.add({ createdS: staleAfterS + 5 })
      const seen: unknown[] = []
      for (const id of [young, old])
        await twin.until(twin.worker.transaction(id, async (tx) => seen.push((await tx.lock())?.isStale)))
      const third = await twin.add({ createdS: staleAfterS + 5 })
      const cancelling = twin.worker.transaction(third, async (tx) => {
        const run = await tx.lock()
        if (run !== undefined) tx.cancel(run, stale)
      })
      await twin.until(cancelling)
      const rows = [await twin.row(third)]
      await twin.until(twin.reconciler.cancelStale())
      return [seen, ...rows, await twin.row(young), await twin.row(old)]
    },
    outcome: [[false, true], ['cancelled', 1, null, 'cancelled'], queued, ['cancelled', 1, null, 'cancelled']],
  },
}

const there = await stand()

describe.each(Object.entries(scenarios))('%s', (_, { steps, outcome }) => {
  test('in PostgreSQL', async () => {
    expect(await steps(await realTwin(there))).toEqual(outcome)
  })
  test('in the simulation', async () => {
    expect(await steps(simulatedTwin())).toEqual(outcome)
  })
})
