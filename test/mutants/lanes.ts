import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Answer, Failure, Question } from './talk.ts'

export type Lane = {
  /** @returns the first failure; null when all tests passed. @throws when the question cannot be answered */
  ask(question: Question): Promise<Failure | null>
  /** Ends its processes and removes its copy. */
  close(): Promise<void>
}

/** A mutant may wait for ever. The tests of no room take that long. */
const patienceMs = 600_000
const root = fileURLToPath(new URL('../..', import.meta.url))
const left = new Set(['node_modules', '.git', '.data', 'coverage', 'dist'])

/** Opens a copy of the project with a process in it, which has servers of its own. */
export function openLane(): Lane {
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-mutants-'))
  cpSync(root, folder, {
    recursive: true,
    filter: (path) => !left.has(relative(root, path).split(sep)[0] ?? ''),
  })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  let child: ChildProcess | undefined

  async function start(): Promise<ChildProcess> {
    const started = fork(join(folder, 'test/mutants/lane.ts'), {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    if ((await nextOf(started)) === undefined) throw new Error('the process of the tests did not start')
    return started
  }

  return {
    async ask(question) {
      child ??= await start()
      const there = child
      const timer = setTimeout(() => there.kill('SIGKILL'), patienceMs)
      there.send(question)
      const answer = await nextOf(there)
      clearTimeout(timer)
      if (answer === undefined) {
        child = undefined
        return { file: question.tests.at(-1) ?? '', how: 'the tests did not end' }
      }
      if ('error' in answer) throw new Error(answer.error)
      return answer.failure
    },
    async close() {
      if (child !== undefined) {
        child.disconnect()
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The next message of a process; undefined when it ends. */
async function nextOf(child: ChildProcess): Promise<Answer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Answer | undefined>()
  const onMessage = (message: unknown) => resolve(message as Answer)
  const onExit = () => resolve(undefined)
  child.once('message', onMessage).once('exit', onExit)
  const message = await promise
  child.off('message', onMessage).off('exit', onExit)
  return message
}
