import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import { expect, inject } from 'vitest'

/** Programs that tests need and that a developer's machine may lack; CI has them all. */
export type Needed = 'redis-server' | 'chromium'

/**
 * For `describe.runIf(needs('redis-server'))('...', () => {})`: false when the program is not installed, which the
 * last lines of the run then say.
 */
export function needs(program: Needed): boolean {
  const { redisUrl, chromium, skipped } = inject('servers')
  const there = { 'redis-server': redisUrl, chromium }[program] !== null
  if (!there) appendFileSync(skipped, `${program}\t${relative('.', expect.getState().testPath ?? 'a test file')}\n`)
  return there
}

/** Chromium's path, for tests under `describe.runIf(needs('chromium'))`. */
export function chromiumPath(): string {
  const { chromium } = inject('servers')
  if (chromium === null)
    throw new Error("Chromium is not installed: put these tests under describe.runIf(needs('chromium'))")
  return chromium
}
