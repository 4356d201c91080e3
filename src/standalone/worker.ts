import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { reasonOf, StartError } from '../start-error.ts'

const program = fileURLToPath(new URL('../../workers/blueprint.ts', import.meta.url))

/** The wait before a worker is started again that ended before it took a job; it doubles. There is none after a job. */
const backoff = { firstMs: 200, longestMs: 10_000 }
/**
 * A worker that is ready takes its first job, a probe, at once. A submission before that is refused when the last job of an
 * earlier start was a while ago.
 */
const firstJobWithinMs = 3_000

/** A worker that ends this often before it was ever ready fails the start. */
const maxFailedStarts = 3
const keptLines = 20

export type Worker = {
  /** Resolves when it first consumes the queue. @throws {StartError} when it does not, with its last output */
  readonly ready: Promise<void>
  /** Prints its output from now on, and the earlier output, which was held so that it does not mix with the banner. */
  show(): void
  /** Sends SIGTERM, and SIGKILL after `withinMs`: harmless, because the next worker continues its runs. */
  stop(withinMs: number): Promise<void>
}

/**
 * Runs the worker as a child process, and starts it again whenever it ends.
 *
 * @param env its environment
 * @param shown returns the text that is printed for a line of its log; null: nothing
 */
export function superviseWorker(
  env: Record<string, string | undefined>,
  shown: (line: string) => string | null = (line) => line,
): Worker {
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
  const stopping = new AbortController()
  const lastLines: string[] = []
  let hidden: string[] | null = []
  let child: ChildProcess | undefined
  let wasReady = false
  let hasTaken = false

  const print = (line: string) => {
    if (hidden === null) process.stdout.write(`${line}\n`)
    else hidden.push(line)
  }

  const start = (): ChildProcess => {
    // Detached, because a signal of the terminal is for this process alone. The worker ends when the channel closes.
    const worker = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], detached: true })
    for (const input of [worker.stdout, worker.stderr])
      if (input)
        createInterface({ input }).on('line', (line) => {
          lastLines.push(line)
          lastLines.splice(0, lastLines.length - keptLines)
          const text = shown(line)
          if (text !== null) print(text)
        })
    worker.on('message', (message) => {
      if (message === 'taken') hasTaken = true
      else {
        wasReady = true
        // No probe comes while the queue is paused.
        setTimeout(resolve, firstJobWithinMs).unref()
      }
      if (wasReady && hasTaken) resolve()
    })
    return worker
  }

  const runOnce = async (): Promise<string> => {
    hasTaken = false
    try {
      child = start()
      const [code, signal] = await once(child, 'close')
      return `ended (${signal ?? `exit code ${code}`})`
    } catch (error) {
      return `could not be started (${reasonOf(error)})`
    }
  }

  const supervise = async () => {
    for (let [ends, waitMs] = [1, backoff.firstMs]; ; ends++) {
      const end = await runOnce()
      if (stopping.signal.aborted) return
      if (!wasReady && ends >= maxFailedStarts)
        throw new StartError(`The worker does not start: it ${end}. Its last output:\n${lastLines.join('\n')}`)
      print(`The worker ${end}; it is started again${hasTaken ? '' : ` in ${waitMs / 1000} s`}.`)
      if (hasTaken) {
        waitMs = backoff.firstMs
        continue
      }
      await delay(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      waitMs = Math.min(waitMs * 2, backoff.longestMs)
    }
  }
  const supervised = supervise().catch(reject)

  return {
    ready,
    show: () => {
      const lines = hidden ?? []
      hidden = null
      lines.forEach(print)
    },
    stop: async (withinMs) => {
      stopping.abort()
      // A start that awaits `ready` goes on, and stops then.
      resolve()
      child?.kill('SIGTERM')
      const kill = setTimeout(() => child?.kill('SIGKILL'), withinMs)
      await supervised
      clearTimeout(kill)
    },
  }
}
