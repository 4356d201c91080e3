import { spawn } from 'node:child_process'

/**
 * Ends a server when this process ends, even by SIGKILL: a shell waits for the end of its standard input, which this
 * process holds open.
 *
 * @param signal ends the server at once
 * @param folder removed with it
 * @returns ends the guard, after the server was stopped in the ordinary way
 */
export function guard({ pid, signal, folder }: { pid: number; signal: 'QUIT' | 'KILL'; folder?: string }): () => void {
  const script = 'read -r _; kill -"$1" "$2" 2>/dev/null; sleep 0.2; [ -z "$3" ] || rm -rf "$3"'
  const shell = spawn('/bin/sh', ['-c', script, 'guard', signal, String(pid), folder ?? ''], {
    // A session of its own: Ctrl-C in the terminal does not reach it.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  if ('unref' in shell.stdin && typeof shell.stdin.unref === 'function') shell.stdin.unref()
  return () => {
    shell.kill('SIGKILL')
  }
}
