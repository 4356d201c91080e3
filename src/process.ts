import type { Logger } from './log.ts'

/** Milliseconds from the first signal, or from the end of the drain, to a forced exit. */
const shutdownMs = 8_000

/**
 * Waits for SIGINT, for SIGTERM, or for the end of a parent with an IPC channel. After that the process exits within
 * `shutdownMs`, even if a connection never closes.
 *
 * @param drainMs is added to that time, because the process still serves meanwhile
 */
export function untilStopped(log: Logger, drainMs = 0): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals) => {
      log.info({ signal }, 'stopping')
      setTimeout(() => {
        log.error('did not stop in time')
        end(1)
      }, drainMs + shutdownMs).unref()
      resolve(signal)
    }
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
    if (process.connected === false) stop('SIGTERM')
    else process.once('disconnect', () => stop('SIGTERM'))
  })
}

/**
 * Ends this process. `process.exit` can hang while V8 compiles in the background (nodejs/node#54918). A parent kills a
 * child that hangs; a child whose parent is gone kills itself, because its exit code has no reader.
 */
export function end(code: number): never {
  if (process.connected === false) process.kill(process.pid, 'SIGKILL')
  process.exit(code)
}
