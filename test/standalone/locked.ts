import { spawn } from 'node:child_process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { lock } from '../../src/standalone/lock.ts'

/** Locks a folder and starts a child, as `npm start` starts its worker. Both run until they are killed. */

const [folder = ''] = process.argv.slice(2)
lock(folder)
const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'], { stdio: 'ignore' })
// No variable refers to the lock from here on.
setFlagsFromString('--expose-gc')
runInNewContext('gc')()
process.stdout.write(`locked, child ${child.pid}\n`)
