import type { Running } from '../support/processes.ts'
import { until } from '../support/until.ts'

/** Starts a worker whenever one ends, as in production. */
export type Supervisor = {
  /** Waits for a worker that is ready. */
  ready(): Promise<unknown>
  /** Kills the worker that runs now, if one is ready; the next is started at once. */
  kill(): void
  readonly kills: number
  /** Waits for a ready worker, then stops it in the ordinary way. */
  stop(): Promise<void>
}

export async function supervise(start: () => Promise<Running>): Promise<Supervisor> {
  let stopping = false
  let kills = 0
  let worker: Running | undefined = await start()
  const loop = (async () => {
    while (!stopping) {
      await worker?.exited
      worker = undefined
      if (!stopping) worker = await start()
    }
  })()
  // stop() reports its failure.
  loop.catch(() => {})
  return {
    ready: () => until('a worker to be ready', () => worker, { withinMs: 30_000 }),
    kill: () => {
      if (worker === undefined) return
      worker.signal('SIGKILL')
      worker = undefined
      kills += 1
    },
    get kills() {
      return kills
    },
    stop: async () => {
      stopping = true
      await worker?.stop()
      await loop
      await worker?.stop()
    },
  }
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32), so that a failure can be replayed. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
