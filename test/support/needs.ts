import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import { expect, inject } from 'vitest'
import { findProgram } from './environment.ts'

/** What tests need and a developer's machine may lack; CI has it all. */
export type Needed = 'redis-server' | 'chromium' | 'curl' | 'root' | 'python3'

/**
 * For `describe.runIf(needs('redis-server'))('...', () => {})`: false when the program is missing, which the
 * last lines of the run then say.
 */
export function needs(program: Needed): boolean {
  const { redisUrl, chromium, curl, skipped } = inject('servers')
  const root = process.getuid?.() === 0 ? 'root' : null
  const python3 = findProgram('python3')
  const there = { 'redis-server': redisUrl, chromium, curl, root, python3 }[program] !== null
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
