import type { Logger } from './log.ts'

/** Milliseconds between the first signal and the end, whatever is still open. */
const stopWithinMs = 8_000

/**
 * Resolves at SIGINT or SIGTERM, or when the process that started this one with a channel is gone; from then on the
 * process ends by itself in time, also when something hangs.
 */
export function untilStopped(log: Logger): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals) => {
      log.info({ signal }, 'stopping')
      setTimeout(() => {
        log.error('did not stop in time')
        process.exit(1)
      }, stopWithinMs).unref()
      resolve(signal)
    }
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
    if (process.connected === false) stop('SIGTERM')
    else process.once('disconnect', () => stop('SIGTERM'))
  })
}

/** Gives back what a start leaves behind, a sixth of the memory: where the process was started with `--expose-gc`. */
export const collectGarbage = (): void => void globalThis.gc?.({ type: 'major', flavor: 'last-resort' })
