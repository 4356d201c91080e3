import { closeSync, openSync } from 'node:fs'
import { environmentFor, readConfig } from '../../src/config.ts'
import { superviseWorker } from '../../src/standalone/worker.ts'

/**
 * Supervises a worker as `npm start` does. SIGUSR2 takes away what a start needs, open files or the program; the next
 * SIGUSR2 gives it back.
 */

const [reason = '', limited] = process.argv.slice(2)
const program = process.execPath
const env = environmentFor(readConfig())
if (limited === undefined) becomeLimited()

/** Starts this program again with few files to open: the default may be millions. */
function becomeLimited(): void {
  const texts = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  const again = ['-c', 'ulimit -n 200 && exec "$0" "$@"', program, import.meta.filename, reason, 'limited']
  process.execve?.('/bin/sh', ['sh', ...again], Object.fromEntries(texts))
}

const taken: number[] = []
let starved = false
process.on('SIGUSR2', () => {
  starved = !starved
  process.execPath = starved && reason === 'program' ? '/there/is/no/such/program' : program
  if (starved && reason === 'files') takeAllFiles()
  else for (const file of taken.splice(0)) closeSync(file)
  process.stdout.write(starved ? 'starved\n' : 'fed\n')
})

function takeAllFiles(): void {
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'))
  } catch {
    // That was the last one.
  }
}

const worker = superviseWorker(env)
process.once('SIGTERM', async () => {
  await worker.stop(5_000)
  process.exit(0)
})
await worker.ready
worker.show()
