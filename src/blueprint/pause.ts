import { setTimeout } from 'node:timers/promises'

/**
 * Waits before another try: each time longer, and with as much again of chance, so that two that collided do not collide
 * again.
 *
 * @param attempt how many tries there were, from 1
 * @param stepMs the least for the first
 */
export const pauseBeforeRetry = (attempt: number, stepMs: number): Promise<void> =>
  setTimeout(stepMs * attempt ** 2 * (1 + Math.random()))
