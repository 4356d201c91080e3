import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import { expect, inject } from 'vitest'
import { findProgram } from './environment.ts'
import { releaseInHistory } from './release.ts'

/** What tests need and a developer's machine may lack; CI has it all. */
export type Needed =
  | 'redis-server'
  | 'chromium'
  | 'curl'
  | 'promtool'
  | 'script'
  | 'nginx'
  | 'pgbouncer'
  | 'haproxy'
  | 'root'
  | 'history'
  | Toolchain
/** Only for `npm run clients`, which leaves out the languages that a machine cannot compile. */
type Toolchain = (typeof toolchains)[number]
const toolchains = ['python3', 'java', 'javac', 'mvn', 'go', 'cargo'] as const

/**
 * The condition of `describe.runIf(needs('redis-server'))('...', () => {})`: false when one of the programs is missing,
 * which the last lines of the run then say.
 */
export function needs(...programs: Needed[]): boolean {
  const { redisUrl, chromium, curl, promtool, skipped } = inject('servers')
  const root = process.getuid?.() === 0 ? 'root' : null
  const found: Partial<Record<Needed, string | null>> = {
    'redis-server': redisUrl,
    chromium,
    curl,
    promtool,
    root,
    script: findProgram('script'),
    nginx: findProgram('nginx'),
    pgbouncer: findProgram('pgbouncer'),
    haproxy: findProgram('haproxy'),
  }
  for (const name of toolchains) found[name] = findProgram(name)
  // A shallow clone has no commit of the last release: `git fetch --unshallow` brings it.
  if (programs.includes('history')) found.history = releaseInHistory()
  const missing = programs.filter((name) => found[name] === null)
  const file = relative('.', expect.getState().testPath ?? 'a test file')
  for (const name of missing) appendFileSync(skipped, `${name}\t${file}\n`)
  return missing.length === 0
}

/** The path of Chromium, or of its headless shell, for tests under `describe.runIf(needs('chromium'))`. */
export function chromiumPath(program: 'chromium' | 'headlessShell'): string {
  const { [program]: path } = inject('servers')
  if (path === null)
    throw new Error("Chromium is not installed: put these tests under describe.runIf(needs('chromium'))")
  return path
}
