import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LogLevel } from '../config.ts'
import { reasonOf, StartError } from '../start-error.ts'

const program = fileURLToPath(new URL('../../workers/blueprint.ts', import.meta.url))
const readyLine = /"msg":"worker ready"/

/** Milliseconds until a worker that died is started again: the first, the longest, and the life that resets it. */
const backOff = { firstMs: 200, longestMs: 10_000, soundMs: 30_000 }
/** Deaths before it ever consumed, after which a start has failed. */
const maxStillbirths = 3
const keptLines = 20

export type Worker = {
  /** Resolves when it consumes for the first time. @throws {StartError} when it will not, with its last words */
  readonly ready: Promise<void>
  /** From now on its log goes to standard output; until then it is held back, so as not to run into the screen. */
  show(): void
  /** SIGTERM; SIGKILL after `withinMs`, which is harmless: its runs are taken up by the next worker. */
  stop(withinMs: number): Promise<void>
}

/**
 * The worker as a process of its own, started again whenever it dies.
 *
 * @param env its environment
 * @param level which of its lines are shown
 */
export function superviseWorker(env: Record<string, string | undefined>, level: LogLevel): Worker {
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
  let child: ChildProcess | undefined
  let stopping = false
  let wasReady = false
  const lines: string[] = []
  let held: string[] | null = []
  const print = (line: string) => {
    if (!isShown(line, level)) return
    if (held === null) process.stdout.write(`${line}\n`)
    else held.push(line)
  }
  // At a quieter level it would not say that it is ready.
  const talking = { ...env, LOG_LEVEL: severity[level] > severity.info ? 'info' : level }

  const hear = (line: string) => {
    lines.push(line)
    lines.splice(0, lines.length - keptLines)
    print(line)
    if (!readyLine.test(line)) return
    wasReady = true
    resolve()
  }

  const keep = async () => {
    for (let deaths = 1, pauseMs = backOff.firstMs; ; deaths++) {
      const born = performance.now()
      const end = await live(talking, hear, (worker) => {
        child = worker
      })
      if (stopping) return
      if (!wasReady && deaths >= maxStillbirths) {
        throw new StartError(`The worker does not start: it ${end}. Its last words:\n${lines.join('\n')}`)
      }
      if (performance.now() - born > backOff.soundMs) pauseMs = backOff.firstMs
      print(`The worker ${end}; it is started again in ${pauseMs / 1000} s.`)
      await delay(pauseMs)
      if (stopping) return
      pauseMs = Math.min(pauseMs * 2, backOff.longestMs)
    }
  }
  const kept = keep().catch(reject)

  return {
    ready,
    show: () => {
      const early = held ?? []
      held = null
      early.forEach(print)
    },
    stop: async (withinMs) => {
      stopping = true
      // Who waits for a worker that is being stopped waits for nothing.
      resolve()
      child?.kill('SIGTERM')
      const late = setTimeout(() => child?.kill('SIGKILL'), withinMs)
      await kept
      clearTimeout(late)
    },
  }
}

/** One life. @returns how it ended, for `The worker ...`; one that could not begin is over, too, and never thrown */
async function live(
  env: Record<string, string | undefined>,
  hear: (line: string) => void,
  born: (worker: ChildProcess) => void,
): Promise<string> {
  try {
    // The channel tells the worker when this process is gone, however it went; signals from the terminal are ours.
    const stdio = ['ignore', 'pipe', 'pipe', 'ipc'] as const
    const worker = spawn(process.execPath, [program], { env, stdio: [...stdio], detached: true })
    const end = endOf(worker)
    born(worker)
    for (const stream of [worker.stdout, worker.stderr]) if (stream) createInterface({ input: stream }).on('line', hear)
    return await end
  } catch (error) {
    return notStarted(error)
  }
}

function endOf(worker: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    worker.once('close', (code, signal) => resolve(`ended (${signal ?? `exit code ${code}`})`))
    worker.on('error', (error) => {
      // Nothing will close of what has no process; what has one lives on.
      if (worker.pid === undefined) resolve(notStarted(error))
    })
  })
}

const notStarted = (error: unknown) => `could not be started (${reasonOf(error)})`

const severity: Readonly<Record<LogLevel, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  fatal: 60,
  silent: 70,
}

/** What is not a log line, a crash's last words say, is always shown. */
function isShown(line: string, level: LogLevel): boolean {
  const told = line.match(/^\{"level":(\d+)/)?.[1]
  return told === undefined || Number(told) >= severity[level]
}
