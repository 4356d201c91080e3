import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TestRunner } from 'vitest'
import { atEnd } from './at-end.ts'
import { plainEnvironment } from './environment.ts'
import { guard } from './guard.ts'
import { until } from './until.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Node keeps here what it compiled: two thirds of a short program's time is stripping types, the same at each start. */
export const compileCache = { NODE_COMPILE_CACHE: resolve(root, 'node_modules/.cache/test-programs') }

/** A longer log loses its beginning. */
const maxOutput = 4_000_000

export type Exit = { code: number | null; signal: NodeJS.Signals | null }

export type Running = {
  readonly pid: number
  /** What it has written so far, both streams together. */
  output(): string
  /** Waits for a line of its output; @throws when it ends or time runs out before */
  line(pattern: RegExp, limits?: { withinMs?: number }): Promise<RegExpMatchArray>
  /** Sends a signal; the process need not end of it. */
  signal(signal: NodeJS.Signals): void
  /** How it ended, once it has. */
  readonly exited: Promise<Exit>
  /** SIGTERM, and waits for its end; @throws when it has not ended within `withinMs` */
  stop(limits?: { withinMs?: number }): Promise<Exit>
  /** SIGKILL, and waits for its end. */
  kill(): Promise<Exit>
}

/**
 * Runs one of the project's TypeScript files as a process. The test must stop it: a process that still runs at the end of
 * the test file is killed, and fails the file.
 *
 * @param file below the project, such as `src/server.ts`, or absolute: a file of another checkout
 * @param env its environment, beside PATH and the like. @param node another Node than the project's
 */
export function run(
  file: string,
  {
    args = [],
    env = {},
    cwd = root,
    node = process.execPath,
  }: { args?: string[]; env?: Record<string, string>; cwd?: string; node?: string } = {},
): Running {
  const child = spawn(node, [resolve(root, file), ...args], {
    cwd,
    env: { ...plainEnvironment(), ...compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${file} could not be started`)
  const release = guard({ pid, signal: 'KILL' })
  let text = ''
  let end: Exit | undefined
  const gather = (chunk: Buffer) => {
    text = (text + chunk.toString('utf8')).slice(-maxOutput)
  }
  child.stdout.on('data', gather)
  child.stderr.on('data', gather)
  // `close` comes after the last output, `exit` may come before it.
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      end = { code, signal }
      release()
      resolve(end)
    })
  })
  const named = `${file} (${pid})`
  const ended = (withinMs: number) => until(`${named} to end`, () => end, { withinMs })

  const test = TestRunner.getCurrentTest()
  atEnd(async () => {
    if (end !== undefined) return
    child.kill('SIGKILL')
    await exited
    const { state, attempts = [] } = test?.result ?? {}
    // A test that fails does not stop what it started.
    if ([state, ...attempts.map((attempt) => attempt.state)].includes('fail')) return
    throw new Error(`${named} was still running at the end of its test file. Its last output:\n${text.slice(-2_000)}`)
  })

  return {
    pid,
    output: () => text,
    exited,
    signal: (signal) => void child.kill(signal),
    line: async (pattern, { withinMs = 60_000 } = {}) => {
      const found = () =>
        text.match(new RegExp(pattern, pattern.flags.includes('m') ? pattern.flags : `${pattern.flags}m`))
      await until(`${named} to write ${pattern}`, () => found() ?? end, { withinMs }).catch((error: unknown) => {
        throw new Error(`${(error as Error).message}. Its last output:\n${text.slice(-2_000)}`)
      })
      const match = found()
      if (match === null)
        throw new Error(`${named} ended (${JSON.stringify(end)}) before it wrote ${pattern}:\n${text.slice(-2_000)}`)
      return match
    },
    stop: async ({ withinMs = 30_000 } = {}) => {
      child.kill('SIGTERM')
      return await ended(withinMs)
    },
    kill: async () => {
      child.kill('SIGKILL')
      return await exited
    },
  }
}
