import { exitCodes } from './exit.ts'

/** The end by a signal. */

const codes = { SIGINT: exitCodes.interrupted, SIGTERM: exitCodes.terminated } as const

/** A terminal sends the signal to this process and to the one that started it, which passes it on. */
const againMs = 1_000

/** Makes both signals end the program with a sentence. The second one ends it at once. */
export function endOnSignals(): void {
  let firstAt: number | null = null
  const end = async (signal: keyof typeof codes) => {
    if (firstAt !== null && performance.now() - firstAt < againMs) return
    if (firstAt !== null) process.exit(codes[signal])
    firstAt = performance.now()
    process.stderr.write('\nInterrupted.\n')
    // It is loaded here: a command that works starts without it.
    const lines = await (await import('./deliver.ts')).whatIsLeft()
    process.stderr.write(lines.map((line) => `${line}\n`).join(''), () => process.exit(codes[signal]))
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end(signal))
}
