import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { atEnd } from './at-end.ts'
import { freshFolder } from './folder.ts'
import { isAlive, until } from './until.ts'

/** A shell that waits for its input, which never comes. */
function shell(program: string, script: string): ChildProcess {
  const child = spawn(program, ['-c', script], { argv0: 'sh', stdio: ['pipe', 'pipe', 'ignore'] })
  atEnd(async () => {
    const ended = once(child, 'close')
    child.kill('SIGKILL')
    await ended
  })
  return child
}

test('a process is alive, and an unused process id is not', () => {
  expect(isAlive(process.pid)).toBe(true)
  expect(isAlive(2 ** 30)).toBe(false)
})

test('an ended process is not alive, even before its parent has reaped it', async () => {
  // The parent becomes another program before the child ends. That program does not reap the child.
  const parent = shell('/bin/sh', "sleep 0.5 & echo $!; exec /bin/sh -c 'read -r _'")
  const [line] = parent.stdout === null ? [] : await once(parent.stdout, 'data')
  const ended = Number(line)
  // It counts as alive until it is reaped where there is no /proc.
  const isKnown = existsSync('/proc/self/stat')
  await until('the child to end', () => isAlive(ended) !== isKnown)
  expect(isAlive(parent.pid ?? 0)).toBe(true)
  // The id is still in use.
  expect(process.kill(ended, 0)).toBe(true)
})

test('a name that looks like a state is not the state', () => {
  const program = join(freshFolder(), 'x) Z (')
  symlinkSync('/bin/sh', program)
  expect(isAlive(shell(program, 'read -r _').pid ?? 0)).toBe(true)
})
