import { readServiceConfig } from '../src/config.ts'
import { startServer } from '../src/server.ts'
import { longestTurnMs } from '../test/support/cpu-time.ts'
import { measureIn } from './child.ts'
import type { ReadTask } from './read.ts'

/**
 * The API in this process, read by a client in another one. Prints how long the longest turn of its event loop was: the
 * time for which no other request was served. The least of a few, because compiling takes time too.
 */

const { path, token }: { path: string; token: string } = JSON.parse(process.argv[2] ?? '')
const { url } = await startServer(readServiceConfig())
const task: ReadTask = { url: `${url}${path}`, token, clients: 1, seconds: 2 }
let turnMs = Number.POSITIVE_INFINITY
for (let round = 0; round < 4; round += 1)
  turnMs = Math.min(turnMs, await longestTurnMs(() => measureIn('read.ts', task)))
console.log(`turn ${turnMs.toFixed(1)} ms`)
process.exit(0)
