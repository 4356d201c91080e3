import { spawn } from 'node:child_process'

/** Runs `npm start`'s program in a terminal, by script(1), which ends with this process. SIGTERM types Ctrl-C there. */

const command = `exec ${process.execPath} src/standalone/main.ts`
const child = spawn('script', ['-qfec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] })
child.stdout.pipe(process.stdout)
process.on('SIGTERM', () => child.stdin.write('\u0003'))
child.on('close', (code) => process.exit(code ?? 1))
