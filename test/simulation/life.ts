import { type Life, maxAttempts } from '../../src/runs/life.ts'

/** The life of a run as src/runs/life.ts draws it: one function of state and event. */

export type RunEvent = 'wait' | 'enqueue' | 'unqueue' | 'lock' | 'release' | 'finish' | 'fail' | 'cancel'

/** @returns the life after the event; the same object when the event changes nothing */
export function live(life: Life, event: RunEvent): Life {
  const { state, attempts } = life
  switch (event) {
    case 'wait':
      return life
    case 'enqueue':
      if (state !== 'queued') return life
      return attempts < maxAttempts ? { state, attempts: attempts + 1 } : { state: 'failed', attempts }
    case 'unqueue':
      return state === 'queued' && attempts > 0 ? { state, attempts: attempts - 1 } : life
    case 'lock':
      return state === 'queued' ? { state: 'running', attempts } : life
    case 'release':
      return state === 'running' ? { state: 'queued', attempts } : life
    case 'finish':
      return state === 'running' ? { state: 'done', attempts } : life
    case 'fail':
      return state === 'running' ? { state: 'failed', attempts } : life
    case 'cancel':
      return state === 'queued' ? { state: 'cancelled', attempts } : life
    default:
      return event satisfies never
  }
}
